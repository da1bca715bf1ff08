#include "dynamix/training/team.h"

#include <gtest/gtest.h>

namespace dynamix {
namespace {

Team TeamOf(int size) {
  Team team{1, {}};
  for (int slot = 0; slot < size; ++slot) team.members.push_back({slot, 1, ""});
  return team;
}

TEST(QuorumTest, IsMoreThanHalfOrHalfWithTheLowestOrAllWhoHaveNotEnded) {
  const Team four = TeamOf(4);
  EXPECT_TRUE(IsQuorum(four, {1, 2, 3}, {}));
  EXPECT_TRUE(IsQuorum(four, {0, 3}, {}));
  EXPECT_FALSE(IsQuorum(four, {1, 3}, {}));
  EXPECT_FALSE(IsQuorum(four, {0}, {}));
  EXPECT_TRUE(IsQuorum(four, {3}, {0, 1, 2}));
  EXPECT_FALSE(IsQuorum(four, {3}, {0, 1}));
  EXPECT_FALSE(IsQuorum(four, {}, {0, 1, 2, 3}));
  EXPECT_TRUE(IsQuorum(TeamOf(1), {0}, {}));
}

TEST(QuorumTest, CountsMembersOnly) { EXPECT_FALSE(IsQuorum(TeamOf(3), {2, 7, 8}, {9})); }

// Every way in which members may have ended, be cut off or stand on one of two sides: never may both
// sides decide, unless all who decided first have ended and nobody of the others heard of it.
TEST(QuorumTest, TwoSidesOfACutNeverBothDecide) {
  for (int size = 1; size <= 6; ++size) {
    const Team team = TeamOf(size);
    int ways = 1;
    for (int i = 0; i < size; ++i) ways *= 3;
    for (int way = 0; way < ways; ++way) {
      std::vector<int> left, right, ended;
      for (int slot = 0, rest = way; slot < size; ++slot, rest /= 3)
        (rest % 3 == 0 ? left : rest % 3 == 1 ? right : ended).push_back(slot);
      if (left.empty() || right.empty()) continue;
      EXPECT_FALSE(IsQuorum(team, left, ended) && IsQuorum(team, right, ended))
          << size << " members, way " << way;
    }
  }
}

TEST(VoteTest, KeepsTheHighestPromiseAndWhatItAccepted) {
  Vote vote;
  EXPECT_TRUE(vote.Promise(5));
  EXPECT_FALSE(vote.Promise(5));
  EXPECT_FALSE(vote.Accept(4, {{0, 1, ""}}));
  EXPECT_EQ(vote.accepted_ballot(), 0);
  EXPECT_TRUE(vote.Accept(5, {{1, 1, ""}}));
  EXPECT_TRUE(vote.Promise(9));
  EXPECT_FALSE(vote.Accept(5, {{2, 1, ""}}));
  EXPECT_EQ(vote.accepted_ballot(), 5);
  EXPECT_EQ(vote.accepted().front().slot, 1);
}

}  // namespace
}  // namespace dynamix
