// OnlineLearner: what one live job learns with while it runs: a learner, the thread its updates run
// on, and its files.
//
// The arbitrator fills the rollout. When it is full, StartUpdate learns from it on a thread; until
// that is done (busy) the learner belongs to the thread and the job keeps its batches. Every update
// is saved (learner and policy file); after a crash only the open rollout is lost. One caller at a
// time. Options are checked at construction (InputError); a checkpoint that cannot be used is told
// in note() and the policy starts as it was given.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "dynamix/arbitrator/learning_options.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {

struct OnlineLearningOptions {
  PpoOptions team_ppo, local_ppo;
  std::string folder;  // of checkpoints; empty: nothing is saved
  std::uint64_t seed = 1;

  // Small steps from a policy that is already good: 32 rounds between updates.
  OnlineLearningOptions();
};

class OnlineLearner {
 public:
  // Learns on from `start`, for its objective. `workers`: slots of the job.
  OnlineLearner(const PolicyModel& start, int workers, const OnlineLearningOptions& options);
  ~OnlineLearner();
  OnlineLearner(const OnlineLearner&) = delete;
  OnlineLearner& operator=(const OnlineLearner&) = delete;

  // Not while busy.
  Learner& learner() { return learner_; }
  const LearningOptions& options() const { return learning_; }

  // Learns from the full rollout; the rows the workers see now stay as they are until busy() is
  // false again.
  void StartUpdate(const Observation& local_next, const Observation& team_next);
  bool busy();

  int updates() const { return updates_; }
  // What became of a checkpoint at the start, or of the last save; empty: nothing to tell.
  const std::string& note() const { return note_; }

  static constexpr const char* kLearnerFile = "learner.safetensors";
  static constexpr const char* kPolicyFile = "policy.safetensors";

 private:
  void Restore(const PolicyModel& start);
  void Update(const Observation& local_next, const Observation& team_next);

  OnlineLearningOptions options_;
  LearningOptions learning_;
  Learner learner_;
  std::thread thread_;  // of the update under way
  std::atomic<bool> updating_ = false;
  std::atomic<int> updates_ = 0;
  std::string note_, thread_note_;  // the second belongs to the thread until it is joined
};

}  // namespace dynamix
