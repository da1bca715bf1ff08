// VectorEnvironment: simulated jobs in lock step, for a learner that is not ours. The loop of
// Arbitrator without the policy: whoever calls Step decides.
//
//   Reset    a new job in every environment
//   Step     actions to legal batches, one window of every job, rewards; a job that ended gives its
//            environment to a new one at once, and its last states stay in StepResult
// Rewards are those our learner gets (core/reward.h, in units of time, missed target included).
// Work runs on `threads` threads; the result does not depend on their number. Not thread-safe
// itself. Options are checked at construction, actions at Step (InputError).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dynamix/arbitrator/learning_run.h"
#include "dynamix/core/action.h"
#include "dynamix/core/encoder.h"
#include "dynamix/core/objective.h"
#include "dynamix/ppo/round_batch.h"

namespace dynamix {

struct VectorOptions {
  int environments = 8;      // [1, 10000]
  int workers = 8;           // of every job, [1, 4096]
  std::int64_t tasks = 256;  // different ones, drawn with replacement, >= 1
  ActionOptions actions{.kind = ActionKind::kAnchored};
  Objective objective;
  std::uint64_t seed = 1;
  int threads = 2;  // [1, 256]

  void Validate() const;
};

// One per environment. Final rows are of the state a job ended in, and as the environment's current
// rows where none did.
struct StepResult {
  std::vector<double> rewards, seconds;  // of the team; length of the window
  std::vector<std::uint8_t> terminated, truncated;
  std::vector<float> final_team, final_local;
};

class VectorEnvironment {
 public:
  // `source` makes jobs of `options.workers` workers.
  VectorEnvironment(const VectorOptions& options, TaskSource source);

  void Reset(std::uint64_t seed);
  // `team` holds an action per environment, `local` one per worker (row-major).
  const StepResult& Step(std::span<const int> team, std::span<const int> local);

  // What is seen now: one team row per environment, one local row per worker.
  const RoundBatch& rows() const { return rows_; }
  const Round& round(int environment) const { return slots_[environment].round; }
  const States& states(int environment) const { return slots_[environment].states; }

 private:
  struct Slot {
    std::int64_t number = 0;
    std::uint64_t course = 0;
    LearningTask task;
    double tau = 0;  // at the last window
    Encoder encoder;
    Round round;
    States states;
  };

  void Begin(Slot& slot);
  void Open(Slot& slot);
  void StepOne(int environment, const Actions& actions);

  VectorOptions options_;
  TaskSource source_;
  Rng rng_;
  std::vector<Slot> slots_;
  RoundBatch rows_;
  StepResult result_;
};

}  // namespace dynamix
