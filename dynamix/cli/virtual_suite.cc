#include "dynamix/cli/virtual_suite.h"

#include <map>

#include "dynamix/cli/data_folder.h"
#include "dynamix/core/input_error.h"
#include "dynamix/training/classifier.h"
#include "dynamix/training/virtual_cluster.h"

namespace dynamix {

VirtualMaker MakeVirtualSuite(const std::vector<JobSpec>& jobs, const std::string& data) {
  SetThreads(1);
  // Shared by the clusters of all jobs, which only read.
  std::map<std::string, std::shared_ptr<const Dataset>> sets;
  for (const JobSpec& job : jobs) {
    const std::string& name = job.workload.model.dataset;
    if (sets.contains(name)) continue;
    if (!data.empty() && !sets.empty())
      throw InputError::OutOfRange("--data", data,
                                   "not given when the jobs need several data sets: set "
                                   "DYNAMIX_DATASETS to the folder that holds them all");
    sets[name] = std::make_shared<const Dataset>(
        LoadDataset(name, data.empty() ? DatasetFolder(name) : data));
  }
  return [sets](const JobSpec& job, const VirtualOptions& options) {
    return MakeVirtualCluster(job, sets.at(job.workload.model.dataset),
                              {.held_out_samples = options.held_out_samples,
                               .evaluate_every = options.evaluate_every,
                               .norm_groups = options.norm_groups});
  };
}

}  // namespace dynamix
