// A suite: the jobs of a folder of scenario files, crossed with their workloads, worker counts and
// seeds.
#pragma once

#include <string>
#include <vector>

#include "dynamix/simulator/distribution.h"

namespace dynamix {

struct SuiteOptions {
  std::string path;                    // a folder of scenario files, or one file
  std::vector<std::string> workloads;  // empty: each scenario's own list
  std::vector<int> workers;            // empty: each scenario's own number
  int seeds = 3;                       // jobs per scenario, workload and worker count, [1, 1000]
  int first_seed = 1;
};

// A job to make and run: everything but the reference run, which is made where it is needed.
struct SuiteJob {
  Scenario scenario;
  Workload workload;
  int workers = 0;
  int seed = 0;
};

// Throws InputError naming the file or the flag.
std::vector<SuiteJob> ListJobs(const SuiteOptions& options);

// The pools a list of jobs needs; loads Fashion-MNIST only when a workload asks for it.
MiniaturePools LoadPools(const std::vector<SuiteJob>& jobs);
// All pools, for learning.
MiniaturePools LoadAllPools();

}  // namespace dynamix
