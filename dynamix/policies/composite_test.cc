#include <gtest/gtest.h>

#include <cmath>

#include "dynamix/core/learning_rate.h"
#include "dynamix/policies/rules.h"
#include "dynamix/policies/testing/closed_loop.h"

namespace dynamix {
namespace {

// A loop under `composite` with the job's rule and schedule.
Loop Composite(LearningRateRule rule, Schedule schedule, std::string_view policy = "composite") {
  Loop loop(policy, {1, 1, 2, 4}, 64);
  loop.round().rule = rule;
  loop.round().schedule = schedule;
  loop.overhead_ms = 5;
  loop.communication_ms = 30;
  return loop;
}

TEST(CompositePolicyTest, OnAConstantScheduleItTakesTheMostProgressPerSecond) {
  for (const LearningRateRule rule : {LearningRateRule::kNone, LearningRateRule::kLinear,
                                      LearningRateRule::kSqrt, LearningRateRule::kAdaScale}) {
    for (const bool adaptive : {false, true}) {
      Loop loop = Composite(rule, Schedule::kConstant);
      loop.round().adaptive = adaptive;
      loop.Run(60);
      const TimeToGoOptions options;
      const auto rate = [&](double batch) {
        const double f = LearningRateFactor(rule, batch, 256, 500);
        const double iteration_ms = 5 + batch / 8 + 30;  // of all: 8 samples per ms after 5 ms
        if (adaptive)
          return f * (std::sqrt((756.0 / 256) / ((batch + 500) / batch)) - options.adaptive * f) /
                 iteration_ms;
        const double noise = options.noise * 500 / 756 * f * 256 / batch;
        const double curvature = rule == LearningRateRule::kAdaScale ? 0 : options.curvature * f;
        return f * (1 - curvature - noise) / iteration_ms;
      };
      EXPECT_GT(rate(loop.global_batch()), 0.97 * rate(BatchOfMost(rate)))
          << Name(rule) << adaptive;
      EXPECT_LT(loop.Imbalance(), 1.1);
    }
  }
}

TEST(CompositePolicyTest, GrowsFurtherTheMoreTheRateGrowsWithTheBatch) {
  Loop none = Composite(LearningRateRule::kNone, Schedule::kCosine);
  Loop sqrt = Composite(LearningRateRule::kSqrt, Schedule::kCosine);
  Loop linear = Composite(LearningRateRule::kLinear, Schedule::kCosine);
  for (Loop* loop : {&none, &sqrt, &linear}) loop->Run(40);
  EXPECT_LT(none.global_batch(), sqrt.global_batch());
  EXPECT_LT(sqrt.global_batch(), linear.global_batch());
}

TEST(CompositePolicyTest, DoesNotUseUpAScheduleForShorterIterationsPerSample) {
  Loop constant = Composite(LearningRateRule::kSqrt, Schedule::kConstant);
  Loop cosine = Composite(LearningRateRule::kSqrt, Schedule::kCosine);
  for (Loop* loop : {&constant, &cosine}) {
    loop->communication_ms = 2000;
    loop->Run(40);
  }
  EXPECT_LT(cosine.global_batch(), 0.5 * constant.global_batch());
}

TEST(CompositePolicyTest, WithoutANoiseScaleItGoesToTheBaseBatch) {
  Loop loop = Composite(LearningRateRule::kLinear, Schedule::kCosine);
  loop.noise_scale = kMissing;
  loop.Run(3);
  EXPECT_NEAR(loop.global_batch(), 256, 4);
}

TEST(CompositePolicyTest, WithoutAProgressItTakesTheScheduleAsConstant) {
  Loop constant = Composite(LearningRateRule::kSqrt, Schedule::kConstant);
  Loop blind = Composite(LearningRateRule::kSqrt, Schedule::kCosine);
  blind.progress = kMissing;
  constant.Run(20);
  blind.Run(20);
  EXPECT_EQ(blind.global_batch(), constant.global_batch());
}

TEST(CompositePolicyTest, GoesOnAfterTheEndOfTheSchedule) {
  for (const Schedule schedule : {Schedule::kConstant, Schedule::kCosine, Schedule::kStep}) {
    Loop loop = Composite(LearningRateRule::kNone, schedule);
    loop.progress = 1;
    loop.Run(20);
    EXPECT_GT(loop.global_batch(), 32) << Name(schedule);
    EXPECT_LT(loop.global_batch(), 2048) << Name(schedule);
  }
}

}  // namespace
}  // namespace dynamix
