// The arbitrator: turns the rounds of one job into batch sizes. The loop of docs/architecture.md,
// one job, a policy that is fixed; LearningArbitrator (learning_arbitrator.h) is the same loop for
// many jobs, with PPO.
//
// Not thread-safe. Never fails: whatever the round holds, the sizes are legal.
#pragma once

#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/core/encoder.h"
#include "dynamix/core/policy.h"
#include "dynamix/core/rng.h"

namespace dynamix {

class Arbitrator {
 public:
  // `policy` is borrowed and must outlive the arbitrator: the owner swaps policies, not the loop.
  Arbitrator(Policy& policy, const ActionOptions& actions, Rng rng)
      : policy_(&policy), actions_(actions), rng_(rng) {}

  // Another policy from the next round on; what the encoder remembers of the job stays.
  void SetPolicy(Policy& policy, const ActionOptions& actions) {
    policy_ = &policy;
    actions_ = actions;
  }

  // The local batches for the next window.
  std::vector<int> Step(const Round& round);

  // The states and decisions of the last Step, for the record.
  const States& states() const { return states_; }
  const Decisions& decisions() const { return decisions_; }

 private:
  Policy* policy_;
  ActionOptions actions_;
  Rng rng_;
  Encoder encoder_;
  States states_;
  Decisions decisions_;
};

}  // namespace dynamix
