#include "dynamix/core/reward.h"

#include <gtest/gtest.h>

#include "dynamix/core/testing/sample_round.h"

namespace dynamix {
namespace {

TEST(RewardTest, QualityIsTheSpeedUpOverTheReference) {
  Rng rng(1);
  Round round = SampleRound(rng, 4);
  round.seconds = 2;
  EXPECT_NEAR(ComputeRewards(round, Batches(round), 3, {}).team.quality, 0.5, 1e-12);
  EXPECT_NEAR(ComputeRewards(round, Batches(round), 2, {}).team.quality, 0, 1e-12);
  EXPECT_NEAR(ComputeRewards(round, Batches(round), -1e9, {}).team.quality, -5, 1e-12);
}

TEST(RewardTest, FallsWhenTheWindowIsSlower) {
  Rng rng(2);
  Round round = SampleRound(rng, 4);
  const double fast = ComputeRewards(round, Batches(round), 1, {}).team.total;
  round.seconds *= 2;
  EXPECT_LT(ComputeRewards(round, Batches(round), 1, {}).team.total, fast);
}

TEST(RewardTest, IsTheSameForTwoShortWindowsAsForOneLongOne) {
  Rng rng(3);
  Round window = SampleRound(rng, 4);
  const double rate = ComputeRewards(window, Batches(window), 1.5, {}).team.total;
  window.seconds /= 2;
  EXPECT_NEAR(ComputeRewards(window, Batches(window), 0.75, {}).team.total, rate, 1e-12);
}

TEST(RewardTest, ThreePartsAddUpByTheirWeights) {
  Rng rng(4);
  const Round round = SampleRound(rng, 4);
  std::vector<int> before = Batches(round);
  for (int& b : before) b *= 2;
  const RewardWeights weights{.quality = 2, .efficiency = 0.5, .stability = 0.25};
  const TeamReward team = ComputeRewards(round, before, 1, weights).team;
  EXPECT_NEAR(team.stability, -1, 1e-12);
  EXPECT_LT(team.efficiency, 0);
  EXPECT_NEAR(team.total, 2 * team.quality + 0.5 * team.efficiency + 0.25 * team.stability, 1e-12);
}

TEST(RewardTest, OnlyTheStragglerPaysForTheWaitItCauses) {
  Rng rng(5);
  Round round = SampleRound(rng, 3);
  const double compute[] = {100, 40, 50};
  for (int i = 0; i < 3; ++i) {
    Report& report = *round.entries[i].report;
    report.compute_ms = compute[i];
    report.wait_ms = 100 - compute[i];
    report.iteration_ms = 100;
  }
  const Rewards rewards = ComputeRewards(round, Batches(round), 1, {.stability = 0});
  EXPECT_NEAR(rewards.local[0], -0.5, 1e-12);
  EXPECT_NEAR(rewards.local[1], -0.6 / 3, 1e-12);
  EXPECT_NEAR(rewards.local[2], -0.5 / 3, 1e-12);
}

TEST(RewardTest, LateAndMissingMeasurementsCostNobodyAnything) {
  Rng rng(6);
  Round round = SampleRound(rng, 3);
  round.entries[0].report.reset();
  round.entries[1].report->compute_ms = kMissing;
  const Rewards rewards = ComputeRewards(round, Batches(round), kMissing, {});
  EXPECT_EQ(rewards.local[0], 0);
  EXPECT_EQ(rewards.local[1], 0);
  EXPECT_TRUE(std::isfinite(rewards.team.total));
}

}  // namespace
}  // namespace dynamix
