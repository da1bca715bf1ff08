// The simulator's tasks as a LearningRun wants them, and the validation set checkpoints are
// selected on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dynamix/arbitrator/learning_run.h"
#include "dynamix/core/policy_spec.h"
#include "dynamix/evaluation/evaluation.h"
#include "dynamix/simulator/distribution.h"

namespace dynamix {

// The workloads fitted to real runs that learning starts some quadratics from, unless it is told
// otherwise. None of their models and data is ever judged on (population.h).
std::vector<std::string> FittedWorkloads();

// Tasks of a distribution by number, each made once (its reference run costs as much as a job).
// Thread-safe.
TaskSource SimulatorTasks(const DistributionOptions& distribution, std::int64_t count,
                          std::uint64_t seed);

// Fixed tasks that learning never sees.
class Validation {
 public:
  Validation(const DistributionOptions& distribution, int tasks, std::uint64_t seed, int threads);

  // Geometric mean of time to target over the reference's, over all tasks and per engine.
  struct Score {
    double all = 0, quadratics = 0, miniatures = 0;
  };
  Score Run(const PolicySpec& policy) const;

 private:
  std::vector<Task> tasks_;
  int threads_;
};

}  // namespace dynamix
