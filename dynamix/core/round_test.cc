#include "dynamix/core/round.h"

#include <gtest/gtest.h>

#include "dynamix/core/testing/sample_round.h"

namespace dynamix {
namespace {

TEST(RoundTest, GlobalBatchAndBoundsCountActiveWorkersOnly) {
  Rng rng(1);
  Round round = SampleRound(rng, 3);
  for (RoundEntry& entry : round.entries) entry.batch = 50;
  round.entries[1].active = false;
  EXPECT_EQ(round.ActiveCount(), 2);
  EXPECT_EQ(round.GlobalBatch(), 100);
  EXPECT_EQ(BoundsOf(round).lowest, 16);
  EXPECT_EQ(BoundsOf(round).highest, 1024);
}

TEST(RoundTest, SplitLeavesInactiveWorkersOut) {
  Rng rng(2);
  Round round = SampleRound(rng, 3);
  round.entries[1].active = false;
  EXPECT_EQ(SplitGlobalBatch(round, 100, {3, 100, 1}), (std::vector<double>{75, 0, 25}));
}

TEST(RoundTest, BatchesAreOfAllWorkersInTheirSlots) {
  Rng rng(3);
  Round round = SampleRound(rng, 3);
  for (int i = 0; i < 3; ++i) round.entries[i].batch = 10 + i;
  round.entries[1].active = false;
  EXPECT_EQ(Batches(round), (std::vector<int>{10, 11, 12}));
}

TEST(RoundTest, MeansLeaveOutWhoDidNotMeasure) {
  Rng rng(4);
  Round round = SampleRound(rng, 5);
  const auto mean = [&round] {
    return MeanOver(round, [](const Report& report) { return report.compute_ms; });
  };
  for (int i = 0; i < 5; ++i) round.entries[i].report->compute_ms = 10 << i;
  round.entries[0].active = false;
  round.entries[1].report.reset();
  round.entries[2].report->compute_ms = kMissing;
  EXPECT_DOUBLE_EQ(mean(), (80 + 160) / 2.0);
  for (RoundEntry& entry : round.entries) entry.report.reset();
  EXPECT_TRUE(IsMissing(mean()));
}

TEST(SmoothTest, StartsAtTheFirstValueAndPassesOverWhatIsMissing) {
  EXPECT_DOUBLE_EQ(Smooth(kMissing, 8, 0.25), 8);
  EXPECT_DOUBLE_EQ(Smooth(8, 12, 0.25), 9);
  EXPECT_DOUBLE_EQ(Smooth(8, kMissing, 0.25), 8);
  EXPECT_TRUE(IsMissing(Smooth(kMissing, kMissing, 0.25)));
}

}  // namespace
}  // namespace dynamix
