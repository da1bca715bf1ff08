// LearningArbitrator: the arbitrator's loop for many jobs at once, with PPO learning from them.
//
// Jobs run in lock step. Per window, in the order of the loop:
//   Close    the rounds that followed the last decisions: encode them, reward the decisions
//   Start    jobs that ended give their slot to a new job
//   Update   learn, when the rollout is full
//   Decide   states to actions to local batches, for all jobs in one batch
// Serving is the same loop without Close and Update (Arbitrator). Work that is per job runs on
// `threads` threads; the result does not depend on their number. Not thread-safe itself; misuse is
// a bug (CheckFailure).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/core/encoder.h"
#include "dynamix/core/features.h"
#include "dynamix/core/reward.h"
#include "dynamix/ppo/learner.h"
#include "dynamix/ppo/round_batch.h"

namespace dynamix {

// What is known about the window a round reports, for the reward.
struct WindowOutcome {
  double progress_seconds = 0;  // reference time gained (reward.h)
  double time_scale_s = 1;      // seconds that count as one unit of time; discounts are per unit
  StepEnd end = StepEnd::kContinues;
  double lump = 0;  // added to the team reward, in units of time
};

struct LearningOptions {
  ActionOptions actions;
  RewardWeights reward;
  // Discount per unit of time of the team's decisions, [0, 1). 0.96: a decision is judged by about
  // 25 units.
  double team_discount = 0.96;
  // The same for local decisions. A share is corrected every round, so their effect is short.
  double local_discount = 0.5;
  // Families of features the policy must do without (ablations).
  std::vector<FeatureFamily> families_off;
  int jobs = 64;         // in lock step, [1, 10000]
  int max_workers = 16;  // slots per job, [1, 4096]
  int threads = 2;       // [1, 256]

  void Validate() const;
};

class LearningArbitrator {
 public:
  // `learner` is borrowed: its owner saves it, and turns it into a policy file.
  LearningArbitrator(const LearningOptions& options, Learner& learner);

  // The first round of a new job in slot `job`.
  void Start(int job, const Round& round);
  // A round of a job whose decisions were taken elsewhere (a resumed run): encoded, not learned
  // from.
  void Observe(int job, const Round& round);
  // The rounds that followed the last Decide, one per job.
  void Close(const std::vector<Round>& rounds, const std::vector<WindowOutcome>& outcomes);
  // Learns when the rollout is full; `progress` in [0, 1] is how much of the learning is done.
  std::optional<LearnerStatistics> Update(double progress);
  // The local batches of every job for the next window.
  std::vector<std::vector<int>> Decide();

  // What job `job` shows now, and its last decisions, for the record.
  const States& states(int job) const { return jobs_[job].states; }
  const Actions& actions(int job) const { return jobs_[job].actions; }

  // Mean parts of the team reward over the windows since the last call.
  TeamReward TakeMeanReward();

 private:
  struct Job {
    Encoder encoder;
    Round round;  // the last one seen
    States states;
    Actions actions;  // decided last
  };

  LearningOptions options_;
  Learner& learner_;
  RoundBatch batch_;
  std::vector<Job> jobs_;
  bool decided_ = false;  // decisions wait for their outcome
  TeamReward reward_sum_;
  std::int64_t reward_count_ = 0;
};

// Agent options for the two heads of a learner that this arbitrator can use.
LearnerOptions MakeLearnerOptions(const LearningOptions& options, const PpoOptions& team,
                                  const PpoOptions& local, const std::vector<int>& hidden,
                                  std::uint64_t seed);

}  // namespace dynamix
