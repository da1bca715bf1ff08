#include "dynamix/core/learning_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "dynamix/core/check.h"
#include "dynamix/core/report.h"

namespace dynamix {
namespace {

constexpr std::array<std::string_view, 4> kRuleNames = {"none", "linear", "sqrt", "adascale"};
constexpr std::array<std::string_view, kScheduleCount> kScheduleNames = {"constant", "cosine",
                                                                         "step", "warmup"};
constexpr std::array<std::string_view, kScheduleClockCount> kClockNames = {"samples", "steps"};
constexpr double kWarmupShare = 0.05;

template <typename Enum, std::size_t kCount>
std::optional<Enum> Parse(std::string_view name,
                          const std::array<std::string_view, kCount>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

double CosineFactor(double progress) {
  return 0.01 + 0.99 * 0.5 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace

std::string_view Name(LearningRateRule rule) { return kRuleNames[static_cast<int>(rule)]; }
std::string_view Name(Schedule schedule) { return kScheduleNames[static_cast<int>(schedule)]; }
std::string_view Name(ScheduleClock clock) { return kClockNames[static_cast<int>(clock)]; }

std::optional<LearningRateRule> ParseLearningRateRule(std::string_view name) {
  return Parse<LearningRateRule>(name, kRuleNames);
}
std::optional<Schedule> ParseSchedule(std::string_view name) {
  return Parse<Schedule>(name, kScheduleNames);
}
std::optional<ScheduleClock> ParseScheduleClock(std::string_view name) {
  return Parse<ScheduleClock>(name, kClockNames);
}

double LearningRateFactor(LearningRateRule rule, double global_batch, double base_batch,
                          double noise_scale) {
  DYNAMIX_CHECK(global_batch > 0 && base_batch > 0, "batches are positive");
  const double scale = global_batch / base_batch;
  switch (rule) {
    case LearningRateRule::kNone:
      return 1;
    case LearningRateRule::kLinear:
      return scale;
    case LearningRateRule::kSqrt:
      return std::sqrt(scale);
    case LearningRateRule::kAdaScale:
      if (IsMissing(noise_scale) || noise_scale < 0) return std::sqrt(scale);
      return (noise_scale / base_batch + 1) / (noise_scale / global_batch + 1);
  }
  return 1;
}

double ScheduleFactor(Schedule schedule, double progress) {
  const double at = std::clamp(progress, 0.0, 1.0);
  switch (schedule) {
    case Schedule::kConstant:
      return 1;
    case Schedule::kCosine:
      return CosineFactor(at);
    case Schedule::kStep:
      return at < 0.5 ? 1 : at < 0.75 ? 0.1 : 0.01;
    case Schedule::kWarmup:
      return at < kWarmupShare ? 0.01 + 0.99 * at / kWarmupShare
                               : CosineFactor((at - kWarmupShare) / (1 - kWarmupShare));
  }
  return 1;
}

double ScheduleAdvance(ScheduleClock clock, double global_batch, double base_batch, double factor) {
  return clock == ScheduleClock::kSteps ? base_batch * factor : global_batch;
}

}  // namespace dynamix
