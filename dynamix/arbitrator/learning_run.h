// LearningRun: many jobs, one learner, until the planned number of updates is done.
//
// Tasks come by number from a TaskSource, so that a run is reproducible from its seed and can be
// resumed exactly: a checkpoint holds the learner and, per slot, which task it runs and every batch
// it was given; Restore replays those windows, which is deterministic, and continues bit for bit.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/core/environment.h"
#include "dynamix/core/result.h"

namespace dynamix {

// One job to learn from.
struct LearningTask {
  std::unique_ptr<Environment> environment;
  // Reference time at which a held-out loss was first reached (reward.h); capped at the target.
  std::function<double(double)> tau;
  double reference_seconds = 1;  // reference time to target: the job's time scale
};

// Task `number`, in course `course` of its noise, jitter and random events. Called from several
// threads.
using TaskSource = std::function<LearningTask(std::int64_t number, std::uint64_t course)>;

// What the window that `task` ran last was worth. `tau` is the task's before it, and is moved on.
WindowOutcome OutcomeOf(const LearningTask& task, const Objective& objective, double& tau);

// The defaults are what the shipped policy was learned with (docs/learning.md).
struct LearningRunOptions {
  LearningOptions learning;
  PpoOptions team_ppo{.steps = 48,
                      .epochs = 8,
                      .minibatches = 8,
                      .learning_rate = 3e-4,
                      .lambda = 0.99,
                      .entropy_coefficient = 0.001};
  PpoOptions local_ppo{.steps = 48, .epochs = 2, .minibatches = 16, .learning_rate = 1e-3};
  std::vector<int> hidden = {64, 64};
  int updates = 10;           // [1, 1000000]
  std::int64_t tasks = 2000;  // different tasks, drawn with replacement, >= 1
  std::uint64_t seed = 1;

  void Validate() const;
};

class LearningRun {
 public:
  LearningRun(const LearningRunOptions& options, TaskSource source);

  // Runs windows until the next update is made.
  struct Step {
    LearnerStatistics statistics;
    TeamReward mean_reward;
    std::int64_t windows = 0;  // of all jobs, in this step
    int jobs_finished = 0;     // reached their target in this step
    int jobs_missed = 0;       // ended without
  };
  Step Advance();

  int updates() const { return updates_; }
  bool Done() const { return updates_ >= options_.updates; }
  const LearningRunOptions& options() const { return options_; }
  Learner& learner() { return learner_; }

  // Between two Advance calls. Keeps the newest two checkpoints of `folder`.
  Status Save(const std::string& folder) const;
  // Continues the newest checkpoint, saved with the same options; an Error leaves this run as it
  // was made.
  Status Restore(const std::string& folder);

 private:
  struct Slot {
    std::int64_t number = 0;
    std::uint64_t course = 0;
    LearningTask task;
    double tau = 0;                       // at the last window
    std::vector<std::vector<int>> sizes;  // of every window after the first
  };

  void Begin(int slot);
  Round Open(Slot& slot) const;
  void Replay(int index);
  std::vector<Round> StepEnvironments(std::vector<WindowOutcome>& outcomes);

  LearningRunOptions options_;
  TaskSource source_;
  Rng rng_;
  Learner learner_;
  Arbitrator arbitrator_;
  std::vector<Slot> slots_;
  std::vector<std::vector<int>> sizes_;
  int updates_ = 0;
};

}  // namespace dynamix
