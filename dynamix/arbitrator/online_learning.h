// OnlineLearner: PPO from one live job, while it runs.
//
// Rounds come one by one. When the rollout is full the update runs on a thread of its own; until it
// is done the job keeps its batches, so nobody ever waits for learning. Every update is saved
// (learner and policy file); after a crash only the open rollout is lost. Rewards are rates
// (reward.h), with progress as progress.h reads it. One caller at a time. Options are checked at
// construction (InputError); a checkpoint that cannot be used is told in note() and the policy
// starts as it was given.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "dynamix/arbitrator/learning_arbitrator.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {

struct OnlineLearningOptions {
  PpoOptions team_ppo, local_ppo;
  LearningOptions learning;  // actions, jobs, max_workers and threads are set by the learner
  std::string folder;        // of checkpoints; empty: nothing is saved
  std::uint64_t seed = 1;

  // Small steps from a policy that is already good: 32 rounds between updates.
  OnlineLearningOptions();
};

// What is known about the window a round reports.
struct OnlineWindow {
  double progress_seconds = kMissing;
  double time_scale_s = 1;
  bool advise = true;  // false: the guard decides, nothing is learned from what follows
};

class OnlineLearner {
 public:
  // `workers`: slots of the job.
  OnlineLearner(const PolicyModel& start, int workers, const OnlineLearningOptions& options);
  ~OnlineLearner();
  OnlineLearner(const OnlineLearner&) = delete;
  OnlineLearner& operator=(const OnlineLearner&) = delete;

  // The local batches for the next window.
  std::vector<int> Step(const Round& round, const OnlineWindow& window);

  int updates() const { return updates_; }
  bool updating() const { return updating_; }
  // Of the last Step that was not during an update.
  const States& states() const { return arbitrator_.states(0); }
  const Actions& actions() const { return arbitrator_.actions(0); }
  // What became of a checkpoint at the start, or of the last save; empty: nothing to tell.
  const std::string& note() const { return note_; }

  static constexpr const char* kLearnerFile = "learner.safetensors";
  static constexpr const char* kPolicyFile = "policy.safetensors";

 private:
  void Restore(const PolicyModel& start);
  void Update();
  void FinishUpdate();

  OnlineLearningOptions options_;
  Learner learner_;
  LearningArbitrator arbitrator_;
  bool started_ = false, open_ = false;  // a first round was seen; a decision waits for its outcome
  std::thread thread_;                   // of the update under way
  std::atomic<bool> updating_ = false;
  std::atomic<int> updates_ = 0;
  std::string note_, thread_note_;  // the second belongs to the thread until it is joined
};

}  // namespace dynamix
