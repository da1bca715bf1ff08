// Rollout: what happened in a fixed number of steps of all rows, and the observations and outcomes
// that fill it.
//
// A row is one decision maker in one environment (a worker slot for the local head, a cluster for
// the team head). Rows run on across rollouts; nothing is reset between them. A step is opened with
// what was seen and decided, and closed with what followed. Misuse is a bug (CheckFailure). Not
// thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dynamix/ppo/advantage.h"
#include "dynamix/ppo/network.h"

namespace dynamix {

// What all rows see in one step. Borrowed: read during the call only.
struct Observation {
  std::span<const float> actor_rows;     // rows x actor_inputs; NaN is missing
  std::span<const float> critic_rows;    // rows x critic_inputs; empty: it sees the actor's rows
  std::span<const std::uint8_t> active;  // rows; 0: decides nothing in this step; empty: all active
  std::span<const std::uint8_t> masks;   // rows x logits; 0: illegal; empty: all legal
};

// What followed. A reward that is not a number counts as 0, and its step is left out of the loss.
struct Outcome {
  std::span<const double> rewards;    // rows
  std::span<const double> discounts;  // rows; from this step to the next, in [0, 1]
  std::span<const StepEnd> ends;      // rows; empty: every row continues
  // Rows of the state a truncated row was cut off in (not the first state of its next episode), in
  // the critic's layout (the actor's when it has none of its own). Read where ends is kTruncated;
  // may be empty then.
  std::span<const float> final_rows;
};

class Rollout {
 public:
  Rollout(const NetworkShape& shape, int steps, int rows);

  int steps() const { return steps_; }
  int rows() const { return rows_; }
  bool Full() const { return closed_ == steps_; }
  bool Empty() const { return opened_ == 0; }
  bool IsOpen() const { return opened_ > closed_; }
  void Clear() { opened_ = closed_ = 0; }

  // Where the normalised rows of the step to be opened go.
  std::span<float> ActorRows() { return StepPart(actor_rows, actor_width_, opened_); }
  std::span<float> CriticRows() { return StepPart(critic_rows, critic_width_, opened_); }
  // Decisions of the rows named by `active_rows`, in their order; the other rows are inactive.
  void Open(std::span<const int> active_rows, std::span<const std::uint8_t> step_masks,
            std::span<const int> step_actions, std::span<const float> step_log_probs,
            std::span<const double> step_values);
  // `step_bootstraps`: values of the final states of truncated rows.
  void Close(const Outcome& outcome, std::span<const double> step_bootstraps);

  // steps x rows, row-major, each.
  std::vector<float> actor_rows;   // normalised
  std::vector<float> critic_rows;  // normalised; empty when the critic sees the actor's rows
  std::vector<std::uint8_t> active;
  std::vector<std::uint8_t> masks;  // empty until a step brings some
  std::vector<int> actions;         // x heads
  std::vector<float> log_probs;
  std::vector<double> values, rewards, discounts, bootstraps;
  std::vector<StepEnd> ends;

 private:
  template <typename T>
  std::span<T> StepPart(std::vector<T>& all, int width, int step) {
    const std::size_t size = static_cast<std::size_t>(rows_) * width;
    return std::span<T>(all).subspan(size * step, size);
  }

  int steps_, rows_, actor_width_, critic_width_, heads_, logits_;
  int opened_ = 0, closed_ = 0;
};

}  // namespace dynamix
