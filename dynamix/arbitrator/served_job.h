// ServedJob: the decisions of one live job. The arbitrator's loop with a policy that can be swapped
// between rounds, a guard, and learning if asked (online_learning.h).
//
// A policy that throws, or wants what is illegal, holds: a broken policy is never worse than none.
// Not thread-safe; never fails.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/arbitrator/guard.h"
#include "dynamix/arbitrator/online_learning.h"
#include "dynamix/arbitrator/progress.h"
#include "dynamix/core/policy_spec.h"

namespace dynamix {

struct ServedJobOptions {
  GuardOptions guard;
  std::uint64_t seed = 1;
  RecordedCurve curve;                     // of an earlier run of the same job; may be empty
  std::unique_ptr<OnlineLearner> learner;  // null: the policy is frozen
};

// What was decided in a round, and why.
struct Decision {
  std::vector<int> sizes;  // one per worker
  Guard::State guard = Guard::State::kAdvises;
  std::string policy;
  States states;
  Decisions decisions;  // of the policy; not followed unless the guard advises
  double progress_seconds = kMissing;
  double useful_rate = kMissing;
  std::string failure;  // what the policy threw; empty: nothing
};

class ServedJob {
 public:
  ServedJob(const PolicySpec& policy, ServedJobOptions options);
  ~ServedJob();

  Decision Step(const Round& round);
  // From the next round on. A job that learns keeps learning: it is only told apart by its name.
  void SetPolicy(const PolicySpec& policy);

  const Guard& guard() const { return guard_; }
  int updates() const { return learner_ ? learner_->updates() : 0; }

 private:
  std::vector<int> Decide(const Round& round, Decision& decision);

  std::string name_;
  std::unique_ptr<Policy> policy_;
  Arbitrator arbitrator_;
  Guard guard_;
  ProgressClock progress_;
  std::unique_ptr<OnlineLearner> learner_;
};

}  // namespace dynamix
