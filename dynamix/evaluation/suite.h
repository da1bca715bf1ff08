// A suite: the jobs of a folder of scenario files, crossed with their workloads, worker counts and
// seeds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dynamix/job/job_spec.h"
#include "dynamix/simulator/distribution.h"

namespace dynamix {

struct SuiteOptions {
  std::string path;                    // a folder of scenario files, or one file
  std::string shipped;                 // folder of the shipped scenarios, where `path` may be too
  std::vector<std::string> workloads;  // empty: each scenario's own list
  std::vector<int> workers;            // empty: each scenario's own number
  int seeds = 3;                       // jobs per scenario, workload and worker count, [1, 1000]
  int first_seed = 1;
};

// The file that a name stands for; throws InputError naming `what`, the value and the choices.
using FindFile = std::function<std::string(const std::string& what, const std::string& value)>;

// Throws InputError naming the file or the flag.
std::vector<JobSpec> ListJobs(const SuiteOptions& options, const FindFile& workload_file);

// The pools a list of jobs needs; loads Fashion-MNIST from its folder only when a workload asks.
MiniaturePools LoadPools(const std::vector<JobSpec>& jobs, const std::string& fashion_folder);
// All pools, for learning.
MiniaturePools LoadAllPools(const std::string& fashion_folder);

}  // namespace dynamix
