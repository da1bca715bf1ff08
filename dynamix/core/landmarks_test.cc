#include "dynamix/core/landmarks.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamix {
namespace {

// Two equal workers: compute 1 ms per sample, an exchange of 100 ms, batches of 8 to 4,096 each.
Round MakeRound(int batch, double noise_scale) {
  Round round;
  round.base_batch = 64;
  for (int i = 0; i < 2; ++i) {
    RoundEntry& entry = round.entries.emplace_back();
    entry.bounds = {.min = 8, .max = 4096};
    entry.start_batch = entry.batch = batch;
    Report report;
    report.local_batch = batch;
    report.iterations = 10;
    report.compute_ms = batch;
    report.communication_ms = 100;
    report.iteration_ms = batch + 100;
    report.training.noise_scale = noise_scale;
    entry.report = report;
  }
  return round;
}

// After rounds whose batches tell overhead from cost.
Landmarks Settled(LandmarkFinder& finder, double noise_scale) {
  Landmarks found;
  for (const int batch : {64, 128, 256, 128, 64, 128})
    found = finder.Find(MakeRound(batch, noise_scale));
  return found;
}

TEST(LandmarksTest, GoodputIsWhereItsDerivativeVanishes) {
  LandmarkFinder finder;
  const auto goodput = [](double batch) { return batch / (100 + batch / 2) / (800 + batch); };
  const double best = std::sqrt(200 * 800);
  const double found = Settled(finder, 800).goodput;
  EXPECT_GT(goodput(found), 0.995 * goodput(best));
  EXPECT_NEAR(std::log2(found / best), 0, 0.2);
}

TEST(LandmarksTest, TimesAtOtherBatchesFollowTheMeasuredLine) {
  LandmarkFinder finder;
  const Landmarks found = Settled(finder, 800);  // at 2 x 128
  EXPECT_NEAR(found.time_at_twice, 356.0 / 228, 0.03);
  EXPECT_NEAR(found.time_at_half, 164.0 / 228, 0.03);
}

TEST(LandmarksTest, TheSoonestBatchGrowsWithTheRule) {
  double last = 0;
  for (const LearningRateRule rule :
       {LearningRateRule::kNone, LearningRateRule::kSqrt, LearningRateRule::kLinear}) {
    LandmarkFinder finder;
    Landmarks found;
    for (const int batch : {64, 128, 256, 128}) {
      Round round = MakeRound(batch, 800);
      round.rule = rule;
      found = finder.Find(round);
    }
    EXPECT_GT(found.soonest, last) << Name(rule);
    last = found.soonest;
  }
}

TEST(LandmarksTest, BeforeAnythingIsMeasuredTheBaseBatchIsAllThereIs) {
  Round round = MakeRound(64, kMissing);
  LandmarkFinder finder;
  Landmarks found = finder.Find(round);
  EXPECT_EQ(found.soonest, 64) << "no noise scale";
  EXPECT_TRUE(IsMissing(found.goodput));
  EXPECT_FALSE(IsMissing(found.time_at_twice));
  for (RoundEntry& entry : round.entries) entry.report.reset();
  LandmarkFinder blind;
  found = blind.Find(round);
  EXPECT_EQ(found.soonest, 64);
  EXPECT_TRUE(IsMissing(found.time_at_twice));
}

}  // namespace
}  // namespace dynamix
