// Learning-rate rules: how the learning rate follows the global batch.
//
// With scale s = B / B_base and noise scale phi (samples), the factor on the schedule's rate is
//
//   none      1
//   linear    s                                     Goyal et al. 2017
//   sqrt      sqrt(s)                               Krizhevsky 2014; for Adam Malladi et al. 2022
//   adascale  (phi / B_base + 1) / (phi / B + 1)    Johnson et al. 2020, the gain ratio; in [1, s]
//
// A schedule runs by samples, or by the length of steps (ScheduleClock).
#pragma once

#include <optional>
#include <string_view>

namespace dynamix {

enum class LearningRateRule : int { kNone = 0, kLinear, kSqrt, kAdaScale };
inline constexpr int kLearningRateRuleCount = 4;

std::string_view Name(LearningRateRule rule);
std::optional<LearningRateRule> ParseLearningRateRule(std::string_view name);

// Both batches > 0. AdaScale without a noise scale falls back to sqrt, its value when phi equals
// the geometric mean of the two batches.
double LearningRateFactor(LearningRateRule rule, double global_batch, double base_batch,
                          double noise_scale);

// Schedules, by progress = the clock's position over samples planned (clamped to [0, 1]), relative
// to the base rate:
//   constant  1
//   cosine    0.01 + 0.99 * (1 + cos(pi * progress)) / 2
//   step      1, then 0.1 from one half, then 0.01 from three quarters
//   warmup    linear from 0.01 to 1 over the first 5 %, then the cosine over the rest: what
//             transformers are trained with (Loshchilov and Hutter 2017; Vaswani et al. 2017)
// Values are on the wire and in the C interface: append, never renumber.
enum class Schedule : int { kConstant = 0, kCosine, kStep, kWarmup };
inline constexpr int kScheduleCount = 4;

std::string_view Name(Schedule schedule);
std::optional<Schedule> ParseSchedule(std::string_view name);
double ScheduleFactor(Schedule schedule, double progress);

// What moves a schedule on. At the base batch both clocks are the same.
//   samples   an iteration counts its samples: so many epochs, whatever the batch
//   steps     an iteration counts base batch * factor: as many samples as the base batch needs, in
//             small steps, to move the weights as far. A large batch whose rate does not grow with it
//             then does not use up the schedule before the job has got anywhere; it sees more epochs.
// Values are on the wire and in the C interface: append, never renumber.
enum class ScheduleClock : int { kSamples = 0, kSteps };
inline constexpr int kScheduleClockCount = 2;

std::string_view Name(ScheduleClock clock);
std::optional<ScheduleClock> ParseScheduleClock(std::string_view name);
// How far an iteration moves the schedule, in samples; `factor` is the learning-rate rule's.
double ScheduleAdvance(ScheduleClock clock, double global_batch, double base_batch, double factor);

}  // namespace dynamix
