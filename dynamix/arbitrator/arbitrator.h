// The arbitrator: turns rounds into batch sizes, and learns. The loop of docs/architecture.md, once
// for everybody: one live or simulated job (Step), or many simulated jobs in lock step that PPO
// learns from (the calls Step is made of). Per window, in this order:
//
//   Open     once: where a job begins, before anything is measured
//   Close    encode the rounds, reward the decisions before them
//   Start    a slot whose job ended gets a new job
//   Update   learn, when the rollout is full
//   Decide   states to actions to legal batches; the guard has the last word
//
// Work that is per job runs on `threads` threads; the result does not depend on their number. Not
// thread-safe itself. Step for a live job never fails: a policy that throws, or wants what is
// illegal, holds. Misuse is a bug (CheckFailure).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dynamix/arbitrator/guard.h"
#include "dynamix/arbitrator/learning_options.h"
#include "dynamix/arbitrator/online_learning.h"
#include "dynamix/arbitrator/progress.h"
#include "dynamix/core/encoder.h"
#include "dynamix/core/policy_spec.h"
#include "dynamix/core/reward.h"
#include "dynamix/ppo/learner.h"
#include "dynamix/ppo/round_batch.h"

namespace dynamix {

// What is known about the window a round reports, for the reward of the decision before it.
struct WindowOutcome {
  double progress_seconds = kMissing;  // reference time gained (reward.h)
  double time_scale_s = 1;  // seconds that count as one unit of time; discounts are per unit
  StepEnd end = StepEnd::kContinues;
  double lump = 0;  // added to the team reward, in units of time
};

// What was decided in a round, and why.
struct Decision {
  std::vector<int> sizes;  // one per worker
  Guard::State guard = Guard::State::kAdvises;
  std::string policy;
  States states;
  Decisions decisions;                 // of the policy; not followed unless the guard advises
  Rewards rewards;                     // of the decision before
  double progress_seconds = kMissing;  // that the rewards count
  double standing = kMissing;          // of the round, by the guard
  std::string failure;                 // what the policy threw; empty: nothing
};

struct ArbitratorOptions {
  GuardOptions guard;
  std::uint64_t seed = 1;
  RecordedCurve curve;                     // of an earlier run of the same job; may be empty
  std::unique_ptr<OnlineLearner> learner;  // null: the policy is frozen
};

class Arbitrator {
 public:
  // One job. With a learner in its options the policy learns while it decides.
  explicit Arbitrator(const PolicySpec& policy, ArbitratorOptions options = {});
  // `options.jobs` simulated jobs. `learner` is borrowed: its owner saves it, and turns it into a
  // policy file.
  Arbitrator(const LearningOptions& options, Learner& learner);

  // The local batches of a job's first window, from what it says about itself (Environment::Opening).
  // Nothing is measured yet, so neither the guard nor a learner has a say in it.
  std::vector<int> Open(const Round& round) const;
  // One window of a live job, whose progress is read from its own reports. Never throws.
  Decision Step(const Round& round);
  // The same where the truth is known. Passes on what the policy throws.
  Decision Step(const Round& round, const WindowOutcome& outcome);

  // From the next round on; what is remembered of the job stays. A job that learns keeps learning:
  // it is only told apart by its name.
  void SetPolicy(const PolicySpec& policy);
  // Everything that decisions to come depend on, of one job whose policy is frozen; its length does
  // not depend on the number of rounds. What another policy remembered is left out when it is read:
  // that policy was swapped, as by SetPolicy.
  void VisitMemory(Memory& memory);

  // The first round of a new job in slot `job`.
  void Start(int job, const Round& round);
  // A round of a job whose decisions were taken elsewhere (a resumed run): encoded, not learned
  // from.
  void Observe(int job, const Round& round);
  // The rounds that followed the last Decide, one per job.
  void Close(const std::vector<Round>& rounds, const std::vector<WindowOutcome>& outcomes);
  // Learns when the rollout is full; `learned_share` in [0, 1] is how much of the learning is done.
  std::optional<LearnerStatistics> Update(double learned_share);
  // The local batches of every job for the next window.
  std::vector<std::vector<int>> Decide();

  const Guard& guard() const { return guard_; }
  int updates() const { return online_ ? online_->updates() : 0; }
  // Mean parts of the team reward over the windows since the last call.
  TeamReward TakeMeanReward();

 private:
  struct Slot {
    Encoder encoder;
    Round round;  // the last one seen
    States states;
    Rewards rewards;      // of the decision before that round
    Decisions decisions;  // taken last
  };

  Decision Describe(const Slot& slot) const;
  Decision Guarded(const Round& round, Decision decision) const;
  void CloseTransitions(const std::vector<WindowOutcome>& outcomes);
  void DecideByLearner();

  LearningOptions options_;
  std::vector<Slot> slots_;

  // One job.
  std::string name_;
  std::unique_ptr<Policy> policy_;  // null: learner_ decides
  Rng rng_{1};
  Guard guard_{GuardOptions{.on = false}};
  ProgressClock clock_;
  bool advise_ = true;  // false: the guard decides, nothing is learned from what follows

  // Learning. The update under way reads batch_, so online_, which waits for it, goes first.
  std::optional<RoundBatch> batch_;
  std::unique_ptr<OnlineLearner> online_;
  Learner* learner_ = nullptr;  // online_'s, or borrowed; null: frozen
  // False while an update is under way on a thread of its own: the job then keeps its batches, so
  // that nobody ever waits for learning.
  bool learns_ = false;
  bool open_ = false;  // decisions wait for their outcome
  TeamReward reward_sum_;
  std::int64_t reward_count_ = 0;
};

}  // namespace dynamix
