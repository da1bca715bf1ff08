#include "dynamix/policies/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/policies/testing/closed_loop.h"

namespace dynamix {
namespace {

TEST(StaticPolicyTest, HoldsTheStartOrItsOwnSize) {
  Loop hold("static", {1, 4}, 64), fixed("static:32", {1, 4}, 64);
  hold.Run(5);
  fixed.Run(5);
  EXPECT_EQ(hold.batch(0), 64);
  EXPECT_EQ(fixed.batch(1), 32);
}

TEST(BalancedPolicyTest, EqualisesComputeTimesAtAConstantGlobalBatch) {
  Loop loop("balanced", {4, 2, 1, 1}, 128);
  loop.Run(3);
  EXPECT_LT(loop.Imbalance(), 1.06);
  EXPECT_NEAR(loop.global_batch(), 512, 4);
}

TEST(BalancedPolicyTest, EqualisesAlsoWhenTimesAreNotProportionalToBatches) {
  Loop loop("balanced", {4, 2, 1, 1}, 128);
  loop.overhead_ms = 60;
  loop.Run(20);
  EXPECT_LT(loop.Imbalance(), 1.06);
}

TEST(BalancedPolicyTest, KeepsTheFirstGlobalBatchWhateverOthersDoToIt) {
  Loop loop("balanced", {4, 2, 1, 1}, 128);
  loop.Run(3);
  loop.Show({32});  // a guard, or a person
  loop.Run(1);
  EXPECT_NEAR(loop.global_batch(), 512, 4);
}

TEST(BalancedPolicyTest, FollowsASlowdown) {
  Loop loop("balanced", {4, 2, 1, 1}, 128);
  loop.Run(5);
  loop.speeds()[0] = 1;
  loop.Run(6);
  EXPECT_LT(loop.Imbalance(), 1.08);
  EXPECT_NEAR(loop.global_batch(), 512, 4);
}

// Two workers of equal batch, whose shares of the global batch differ from it by so many percent,
// up and down. Granularity 1, so half a sample is rounding.
std::vector<int> BalancedSizes(int batch, double percent) {
  Round round;
  for (int i = 0; i < 2; ++i) {
    RoundEntry& entry = round.entries.emplace_back();
    entry.bounds = {.min = 1, .max = 100000};
    entry.start_batch = entry.batch = batch;
  }
  States states;
  states.workers = 2;
  states.shares = {0.5 * (1 + percent / 100), 0.5 * (1 - percent / 100)};
  Rng rng(1);
  const auto policy = MakePolicy("balanced");
  return Apply(round, states, policy->Decide(round, states, rng), {});
}

// The dead band is 5 % of a batch, whatever its size: 50 of 1,000 samples, 500 of 10,000.
TEST(BalancedPolicyTest, HoldsJustInsideItsDeadBandAndMovesJustOutside) {
  for (const int batch : {1000, 10000}) {
    EXPECT_EQ(BalancedSizes(batch, 4.9), std::vector<int>(2, batch)) << batch;
    const std::vector<int> moved = BalancedSizes(batch, 5.2);
    EXPECT_NEAR(moved[0], 1.052 * batch, 1) << batch;
    EXPECT_NEAR(moved[1], 0.948 * batch, 1) << batch;
  }
}

// delta b_i = -(b_i / t_i) (t_i - mean t), then scaled so that the global batch stays.
std::vector<double> OmniLearnUpdate(const Loop& loop, std::vector<double> batches) {
  std::vector<double> ms;
  for (std::size_t i = 0; i < batches.size(); ++i) ms.push_back(loop.ComputeMs(i));
  const double mean = std::accumulate(ms.begin(), ms.end(), 0.0) / ms.size();
  const double before = std::accumulate(batches.begin(), batches.end(), 0.0);
  for (std::size_t i = 0; i < batches.size(); ++i)
    batches[i] -= batches[i] / ms[i] * (ms[i] - mean);
  const double scale = before / std::accumulate(batches.begin(), batches.end(), 0.0);
  for (double& batch : batches) batch *= scale;
  return batches;
}

// LB-BSP (Chen et al. 2020, "Semi-dynamic load balancing", SoCC): b_i = B v_i / sum_j v_j, where v_i
// is the speed expected of worker i in samples per second of compute; here the last measured one.
std::vector<double> LbBspUpdate(const Loop& loop, std::vector<double> batches) {
  const double global_batch = std::accumulate(batches.begin(), batches.end(), 0.0);
  for (std::size_t i = 0; i < batches.size(); ++i) batches[i] /= 1e-3 * loop.ComputeMs(i);
  const double speeds = std::accumulate(batches.begin(), batches.end(), 0.0);
  for (double& batch : batches) batch *= global_batch / speeds;
  return batches;
}

// Clusters of four workers, with and without an overhead: the most samples that a worker's batch is
// away from the published update after one round. docs/results.md shows it.
double FurthestFrom(std::vector<double> (*published)(const Loop&, std::vector<double>)) {
  double furthest = 0;
  for (const std::vector<double>& speeds :
       {std::vector{4.0, 2.0, 1.0, 1.3}, {1.0, 1.0, 1.0, 3.0}, {8.0, 1.0, 2.0, 5.0}}) {
    for (const double overhead : {0.0, 15.0, 60.0}) {
      Loop loop("balanced", speeds, 128);
      loop.overhead_ms = overhead;
      const std::vector<double> theirs = published(loop, {128, 128, 128, 128});
      loop.Run(1);
      for (int i = 0; i < 4; ++i)
        furthest = std::max(furthest, std::abs(loop.batch(i) - theirs[i]));
    }
  }
  testing::Test::RecordProperty("settings", 9);
  testing::Test::RecordProperty("furthest", std::to_string(furthest));
  return furthest;
}

// Batches are whole numbers, and their sum is kept: one sample is rounding.
TEST(BalancedPolicyTest, IsOmniLearnsUpdateAtAConstantGlobalBatch) {
  EXPECT_LE(FurthestFrom(OmniLearnUpdate), 1);
}

TEST(BalancedPolicyTest, IsLbBspsUpdateWithTheMeasuredSpeeds) {
  EXPECT_LE(FurthestFrom(LbBspUpdate), 1);
}

TEST(BalancedPolicyTest, StaysAtOmniLearnsFixedPoint) {
  Loop loop("balanced:dead_band=0", {4, 2, 1, 1.3}, 128);
  loop.overhead_ms = 15;
  loop.Run(50);
  std::vector<double> batches;
  for (int i = 0; i < 4; ++i) batches.push_back(loop.batch(i));
  const std::vector<double> theirs = OmniLearnUpdate(loop, batches);
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(theirs[i], batches[i], 1);
}

TEST(BalancedPolicyTest, AWiderDeadBandLeavesMoreStraggling) {
  Loop usual("balanced", {1, 1.3}, 128), omnilearn("balanced:dead_band=0.2", {1, 1.3}, 128);
  usual.Run(5);
  omnilearn.Run(5);
  EXPECT_LT(usual.Imbalance(), 1.03);
  EXPECT_EQ(omnilearn.batch(0), 128);
}

TEST(BasePolicyTest, GoesStraightToTheBaseBatchInBalancedShares) {
  Loop loop("base", {4, 2, 1, 1}, 512);
  loop.round().base_batch = 400;
  loop.Run(1);
  EXPECT_NEAR(loop.global_batch(), 400, 3);
  EXPECT_LT(loop.Imbalance(), 1.05);
}

TEST(BasePolicyTest, AJobWithoutABaseBatchStaysAtItsStart) {
  Loop loop("base", {4, 2, 1, 1}, 128);
  loop.round().base_batch = kMissing;
  loop.Run(3);
  EXPECT_NEAR(loop.global_batch(), 512, 4);
}

TEST(NoiseScalePolicyTest, BringsTheGlobalBatchToTheNoiseScale) {
  Loop loop("noise_scale:scale=1", {1, 2}, 16);
  loop.noise_scale = 900;
  loop.Run(30);
  EXPECT_NEAR(loop.global_batch() / 900, 1, 0.12);
  loop.noise_scale = 100;
  loop.Run(40);
  EXPECT_NEAR(loop.global_batch() / 100, 1, 0.12);
}

TEST(NoiseScalePolicyTest, MovesTheGlobalBatchByOneStepInARound) {
  Loop loop("noise_scale:scale=1:step=1.5", {1, 1}, 32);
  loop.noise_scale = 100000;
  loop.Run(1);
  EXPECT_NEAR(loop.global_batch(), 96, 2);
  loop.Run(1);
  EXPECT_NEAR(loop.global_batch(), 144, 2);
}

}  // namespace
}  // namespace dynamix
