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

}  // namespace
}  // namespace dynamix
