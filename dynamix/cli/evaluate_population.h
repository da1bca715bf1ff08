// dynamix evaluate --suite judge and --suite validation-jobs: the flags that belong to them, and the
// wiring of data, progress, cache, results file and page.
#pragma once

#include <string>
#include <vector>

#include "dynamix/cli/virtual_suite.h"
#include "dynamix/evaluation/population.h"

namespace CLI {
class App;
}

namespace dynamix {

struct PopulationFlags {
  std::string cache = "runs/judge";
  std::vector<std::string> jobs;   // names; empty: all
  std::vector<std::string> fresh;  // policies whose runs are made again
  double length = 1;               // of every job, (0, 1]
  std::string again;               // a policy whose lost jobs are run again; empty: none
  int again_seeds = 5;             // with so many other seeds, [2, 100]
  bool list = false;
  // What the command shares with other suites.
  std::string policies, data, record, report;
  int threads = 2;
  bool json = false;
};

void AddPopulationFlags(CLI::App& command, PopulationFlags& flags);

// Throws InputError for bad flags and missing data, Interrupted after ctrl-C.
void EvaluatePopulation(Population population, const PopulationFlags& flags,
                        const VirtualSuite& suite);

}  // namespace dynamix
