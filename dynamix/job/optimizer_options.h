// How a job's weights move: the optimizer, its learning rate, and the rule and schedule that change
// it. A plain value, the same for all backends.
#pragma once

#include "dynamix/core/learning_rate.h"
#include "dynamix/core/round.h"

namespace dynamix {

enum class OptimizerKind : int { kSgd = 0, kAdam, kAdamW };
inline constexpr int kOptimizerKindCount = 3;

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kSgd;
  double learning_rate = 0.05;  // at base_batch, > 0
  double momentum = 0.9;        // SGD momentum or Adam's beta1, [0, 1)
  double weight_decay = 0;      // AdamW only: share of a weight taken per step and rate, [0, 1]
  double base_batch = 128;      // global batch the learning rate belongs to, > 0
  LearningRateRule rule = LearningRateRule::kNone;
  Schedule schedule = Schedule::kConstant;
  ScheduleClock clock = ScheduleClock::kSamples;
  double planned_samples = 1e6;  // the schedule's length, > 0

  // The optimizer scales every weight's step by itself.
  bool adaptive() const { return kind != OptimizerKind::kSgd; }
  // Of an iteration:
  //   learning_rate
  //   * schedule(position of its clock / planned samples)
  //   * rule(global batch, base batch, noise scale)
  double LearningRate(double global_batch, double position, double noise_scale) const {
    return learning_rate * ScheduleFactor(schedule, position / planned_samples) *
           LearningRateFactor(rule, global_batch, base_batch, noise_scale);
  }
  // How far an iteration moves the clock, in samples.
  double Advance(double global_batch, double noise_scale) const {
    return ScheduleAdvance(clock, global_batch, base_batch,
                           LearningRateFactor(rule, global_batch, base_batch, noise_scale));
  }
};

// What rounds repeat of it; targets are the workload's.
inline JobSettings SettingsOf(const OptimizerOptions& optimizer) {
  return {.rule = optimizer.rule,
          .schedule = optimizer.schedule,
          .clock = optimizer.clock,
          .adaptive = optimizer.adaptive(),
          .base_learning_rate = optimizer.learning_rate,
          .base_batch = optimizer.base_batch};
}

}  // namespace dynamix
