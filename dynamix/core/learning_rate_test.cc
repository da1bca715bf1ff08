#include "dynamix/core/learning_rate.h"

#include <gtest/gtest.h>

#include "dynamix/core/report.h"

namespace dynamix {
namespace {

TEST(LearningRateTest, EveryRuleIsOneAtTheBaseBatch) {
  for (int rule = 0; rule < kLearningRateRuleCount; ++rule)
    EXPECT_DOUBLE_EQ(LearningRateFactor(static_cast<LearningRateRule>(rule), 128, 128, 500), 1);
}

TEST(LearningRateTest, RulesFollowTheirFormulas) {
  EXPECT_DOUBLE_EQ(LearningRateFactor(LearningRateRule::kNone, 512, 128, 500), 1);
  EXPECT_DOUBLE_EQ(LearningRateFactor(LearningRateRule::kLinear, 512, 128, 500), 4);
  EXPECT_DOUBLE_EQ(LearningRateFactor(LearningRateRule::kSqrt, 512, 128, 500), 2);
  // (384/128 + 1) / (384/512 + 1) = 4 / 1.75
  EXPECT_DOUBLE_EQ(LearningRateFactor(LearningRateRule::kAdaScale, 512, 128, 384), 4 / 1.75);
}

TEST(LearningRateTest, AdaScaleLiesBetweenOneAndTheScale) {
  for (double noise : {0.0, 1.0, 100.0, 1e4, 1e9}) {
    const double up = LearningRateFactor(LearningRateRule::kAdaScale, 1024, 128, noise);
    EXPECT_GE(up, 1);
    EXPECT_LE(up, 8);
    const double down = LearningRateFactor(LearningRateRule::kAdaScale, 32, 128, noise);
    EXPECT_LE(down, 1);
    EXPECT_GE(down, 0.25);
  }
  EXPECT_NEAR(LearningRateFactor(LearningRateRule::kAdaScale, 1024, 128, 1e12), 8, 1e-6);
  EXPECT_DOUBLE_EQ(LearningRateFactor(LearningRateRule::kAdaScale, 512, 128, kMissing), 2);
}

TEST(LearningRateTest, NamesAndParsersAgree) {
  for (const char* name : {"none", "linear", "sqrt", "adascale"})
    EXPECT_EQ(Name(*ParseLearningRateRule(name)), name);
  for (const char* name : {"constant", "cosine", "step", "warmup"})
    EXPECT_EQ(Name(*ParseSchedule(name)), name);
  EXPECT_FALSE(ParseLearningRateRule("cubic"));
  EXPECT_FALSE(ParseSchedule(""));
  for (const char* name : {"samples", "steps"}) EXPECT_EQ(Name(*ParseScheduleClock(name)), name);
  EXPECT_FALSE(ParseScheduleClock("epochs"));
}

TEST(ScheduleTest, ByStepsAnIterationCountsWhatItsRateIsWorthAtTheBaseBatch) {
  EXPECT_EQ(ScheduleAdvance(ScheduleClock::kSamples, 1024, 128, 2.5), 1024);
  EXPECT_EQ(ScheduleAdvance(ScheduleClock::kSteps, 1024, 128, 2.5), 320);
  for (const auto rule : {LearningRateRule::kNone, LearningRateRule::kLinear,
                          LearningRateRule::kSqrt, LearningRateRule::kAdaScale}) {
    const double factor = LearningRateFactor(rule, 128, 128, 700);
    EXPECT_DOUBLE_EQ(ScheduleAdvance(ScheduleClock::kSteps, 128, 128, factor), 128) << Name(rule);
  }
  const double linear = LearningRateFactor(LearningRateRule::kLinear, 1024, 128, 700);
  EXPECT_DOUBLE_EQ(ScheduleAdvance(ScheduleClock::kSteps, 1024, 128, linear), 1024);
}

TEST(ScheduleTest, SchedulesFallFromOneAndStayPositive) {
  for (auto schedule : {Schedule::kConstant, Schedule::kCosine, Schedule::kStep}) {
    EXPECT_DOUBLE_EQ(ScheduleFactor(schedule, 0), 1);
    double previous = 1;
    for (double progress = 0; progress <= 1.5; progress += 0.01) {
      const double factor = ScheduleFactor(schedule, progress);
      EXPECT_LE(factor, previous);
      EXPECT_GT(factor, 0);
      previous = factor;
    }
  }
  EXPECT_NEAR(ScheduleFactor(Schedule::kCosine, 0.5), 0.505, 1e-12);
  EXPECT_DOUBLE_EQ(ScheduleFactor(Schedule::kStep, 0.8), 0.01);
}

TEST(ScheduleTest, WarmupRisesToOneAndFallsAlongTheCosine) {
  double previous = 0;
  for (double progress = 0; progress < 0.0501; progress += 0.001) {
    const double factor = ScheduleFactor(Schedule::kWarmup, progress);
    EXPECT_GT(factor, previous);
    previous = factor;
  }
  EXPECT_DOUBLE_EQ(ScheduleFactor(Schedule::kWarmup, 0.05), 1);
  EXPECT_NEAR(ScheduleFactor(Schedule::kWarmup, 0.525), 0.505, 1e-12);
  EXPECT_DOUBLE_EQ(ScheduleFactor(Schedule::kWarmup, 1), ScheduleFactor(Schedule::kCosine, 1));
}

}  // namespace
}  // namespace dynamix
