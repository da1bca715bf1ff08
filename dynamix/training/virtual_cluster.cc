#include "dynamix/training/virtual_cluster.h"

#include <algorithm>

#include "dynamix/core/input_error.h"
#include "dynamix/training/real_convergence.h"

namespace dynamix {

std::unique_ptr<SimulatedCluster> MakeVirtualCluster(const JobSpec& job,
                                                     std::shared_ptr<const Dataset> data,
                                                     const VirtualClusterOptions& options) {
  const Workload& workload = job.workload;
  if (data->name != workload.model.dataset)
    throw InputError::OutOfRange("dataset", data->name,
                                 "the workload's, " + workload.model.dataset);
  RealConvergenceOptions engine;
  engine.model = workload.model;
  engine.optimizer = workload.optimizer;
  engine.augmentation = UsualAugmentation(*data);
  engine.seed = job.seed;
  engine.held_out_samples = HeldOutSamples(*data, options.held_out_samples, 2000);
  engine.noise_every = options.noise_every;
  engine.norm_groups = options.norm_groups;
  auto cluster = std::make_unique<SimulatedCluster>(
      job, std::make_unique<RealConvergence>(engine, std::move(data)));
  cluster->set_evaluate_every(options.evaluate_every);
  JobLimits limits;
  limits.target_accuracy = limits.named_accuracy = workload.target.accuracy;
  limits.target_loss = limits.named_loss = workload.target.loss;
  cluster->set_limits(limits);
  return cluster;
}

}  // namespace dynamix
