#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "dynamix/core/learning_rate.h"
#include "dynamix/policies/rules.h"
#include "dynamix/policies/testing/closed_loop.h"

namespace dynamix {
namespace {

// Part of a step that noise takes at the base batch of 256, at a noise scale of 500.
double NoisePart(double iterations = 10000) {
  const TimeToGoOptions options;
  return options.noise * iterations / (iterations + options.burn_in) * 500 / 756;
}

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
        const double noise = NoisePart() * f * 256 / batch;
        const double curvature = rule == LearningRateRule::kAdaScale ? 0 : options.curvature * f;
        return f * (1 - curvature - noise) / iteration_ms;
      };
      EXPECT_GT(rate(loop.global_batch()), 0.97 * rate(BatchOfMost(rate)))
          << Name(rule) << adaptive;
      EXPECT_LT(loop.Imbalance(), 1.1);
    }
  }
}

TEST(CompositePolicyTest, NoiseGathersWithIterations) {
  for (const int iterations : {20, 100, 10000}) {
    Loop loop = Composite(LearningRateRule::kNone, Schedule::kConstant);
    loop.iterations = iterations;
    loop.Run(60);
    const auto rate = [&](double batch) {
      const double noise = NoisePart(iterations) * 256 / batch;
      return (1 - TimeToGoOptions().curvature - noise) / (5 + batch / 8 + 30);
    };
    const double best = BatchOfMost(rate);
    EXPECT_GT(rate(loop.global_batch()), 0.97 * rate(best)) << iterations;
    EXPECT_NEAR(std::log2(loop.global_batch() / best), 0, 0.35) << iterations;
  }
}

TEST(CompositePolicyTest, GrowsFurtherTheMoreTheRateGrowsWithTheBatch) {
  Loop none = Composite(LearningRateRule::kNone, Schedule::kCosine);
  Loop sqrt = Composite(LearningRateRule::kSqrt, Schedule::kCosine);
  Loop linear = Composite(LearningRateRule::kLinear, Schedule::kCosine);
  for (Loop* loop : {&none, &sqrt, &linear}) {
    loop->communication_ms = 100;
    loop->Run(40);
  }
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

// At a tenth of a cosine schedule, by brute force: the target is where the base batch gets in half of
// what is left, as the head of core/time_to_go.cc says; sums in small steps instead of its table. Of
// an iteration of `batch` samples, rate(batch) is the rule's factor and advance(batch) what it counts
// on the schedule's clock.
double LeastTimeToGo(double (*rate)(double batch), double (*advance)(double batch)) {
  const TimeToGoOptions options;
  constexpr double kStart = 0.1, kStep = 1e-4;
  const auto worth = [&](double batch) {
    const double f = rate(batch);
    return f * (1 - options.curvature * f - NoisePart() * f * 256 / batch);
  };
  const auto factor = [](double at) {
    return ScheduleFactor(Schedule::kCosine, std::min(at, 1.0));
  };
  double distance = 0;  // D* / S
  for (double x = 0; x < options.horizon * (1 - kStart); x += kStep)
    distance += worth(256) / advance(256) * factor(kStart + x) * kStep;
  const auto speed = [&](double batch) {
    if (worth(batch) <= 0) return 0.0;
    double x = 0;
    for (double gone = 0; gone < distance && x < 100; x += kStep)
      gone += worth(batch) / advance(batch) * factor(kStart + x) * kStep;
    return 1 / (x / advance(batch) * (5 + batch / 8 + 30));
  };
  double best = 64, fastest = 0;
  for (double batch = 64; batch < 4000; batch *= 1.02) {
    const double found = speed(batch);
    if (found > fastest) best = batch;
    fastest = std::max(fastest, found);
  }
  return best;
}

TEST(CompositePolicyTest, OnACosineScheduleItTakesTheLeastTimeToGo) {
  Loop samples = Composite(LearningRateRule::kNone, Schedule::kCosine);
  samples.Run(60);
  const double by_samples =
      LeastTimeToGo([](double) { return 1.0; }, [](double batch) { return batch; });
  EXPECT_NEAR(std::log(samples.global_batch() / by_samples), 0, 0.1) << by_samples;

  Loop steps = Composite(LearningRateRule::kSqrt, Schedule::kCosine);
  steps.round().clock = ScheduleClock::kSteps;
  steps.Run(60);
  const double by_steps = LeastTimeToGo([](double batch) { return std::sqrt(batch / 256); },
                                        [](double batch) { return 256 * std::sqrt(batch / 256); });
  EXPECT_NEAR(std::log(steps.global_batch() / by_steps), 0, 0.1) << by_steps;
}

TEST(CompositePolicyTest, ByStepsALargeBatchIsNotHeldBackByTheSchedule) {
  Loop samples = Composite(LearningRateRule::kNone, Schedule::kCosine);
  Loop steps = Composite(LearningRateRule::kNone, Schedule::kCosine);
  steps.round().clock = ScheduleClock::kSteps;
  for (Loop* loop : {&samples, &steps}) {
    loop->communication_ms = 2000;
    loop->Run(40);
  }
  EXPECT_GT(steps.global_batch(), 1.5 * samples.global_batch());
}

// The user lowered the rate; growing with the rule would raise it again.
TEST(CompositePolicyTest, AStepDownOfTheRateIsNoLeaveToGrow) {
  for (const bool adaptive : {false, true}) {
    Loop constant = Composite(LearningRateRule::kLinear, Schedule::kConstant);
    Loop stepped = Composite(LearningRateRule::kLinear, Schedule::kStep);
    stepped.progress = 0.76;  // after the last of them
    for (Loop* loop : {&constant, &stepped}) {
      loop->round().adaptive = adaptive;
      loop->Run(40);
    }
    EXPECT_NEAR(stepped.global_batch(), constant.global_batch(), 2) << adaptive;
  }
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
