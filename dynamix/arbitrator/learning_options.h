// What the arbitrator learns, from how many jobs at once. Plain values, checked by Validate
// (InputError).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/core/features.h"
#include "dynamix/core/objective.h"
#include "dynamix/ppo/learner.h"

namespace dynamix {

struct LearningOptions {
  ActionOptions actions{.kind = ActionKind::kGuided, .local = false};
  Objective objective;
  // Families of features, and single ones, that the policy must do without (ablations): "network",
  // "time_at_twice".
  std::vector<std::string> without;
  int jobs = 64;         // in lock step, [1, 10000]
  int max_workers = 32;  // slots per job, [1, 4096]
  int threads = 2;       // [1, 256]

  void Validate() const;
};

// Agent options for the two heads of a learner that such an arbitrator can use.
LearnerOptions MakeLearnerOptions(const LearningOptions& options, const PpoOptions& team,
                                  const PpoOptions& local, const std::vector<int>& hidden,
                                  std::uint64_t seed);

}  // namespace dynamix
