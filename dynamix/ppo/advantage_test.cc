#include "dynamix/ppo/advantage.h"

#include <gtest/gtest.h>

#include "dynamix/core/check.h"

namespace dynamix {
namespace {

constexpr StepEnd kGo = StepEnd::kContinues, kEnd = StepEnd::kTerminated,
                  kCut = StepEnd::kTruncated;

// One row, constant discount.
struct Row {
  std::vector<double> rewards, values, bootstraps, discounts;
  std::vector<StepEnd> ends;
  std::vector<std::uint8_t> active;
  double last_value = 0;

  Advantages Compute(double lambda) const {
    return ComputeAdvantages({static_cast<int>(rewards.size()),
                              1,
                              rewards,
                              values,
                              discounts,
                              ends,
                              bootstraps,
                              active,
                              {&last_value, 1}},
                             lambda);
  }
};

Row MakeRow(std::vector<double> rewards, double discount) {
  const std::size_t n = rewards.size();
  return {.rewards = std::move(rewards),
          .values = std::vector<double>(n),
          .bootstraps = std::vector<double>(n),
          .discounts = std::vector<double>(n, discount),
          .ends = std::vector<StepEnd>(n, kGo),
          .active = {},
          .last_value = 0};
}

TEST(AdvantageTest, ReturnsOfTheLiteralExample) {
  Row row = MakeRow({0, 1, 2, 3, 4, 5, 6, 7}, .1);
  row.ends = {kEnd, kGo, kGo, kEnd, kGo, kEnd, kGo, kEnd};
  const std::vector<double> want = {0, 1.23, 2.3, 3, 4.5, 5, 6.7, 7};
  const Advantages got = row.Compute(1);
  for (std::size_t t = 0; t < want.size(); ++t) EXPECT_NEAR(got.returns[t], want[t], 1e-12);
}

TEST(AdvantageTest, HandWorkedThreeSteps) {
  Row row = MakeRow({1, 2, 3}, .5);
  row.values = {10, 20, 30};
  row.last_value = 40;
  const Advantages got = row.Compute(.5);
  const double d2 = 3 + .5 * 40 - 30, d1 = 2 + .5 * 30 - 20, d0 = 1 + .5 * 20 - 10;
  EXPECT_DOUBLE_EQ(got.advantages[2], d2);
  EXPECT_DOUBLE_EQ(got.advantages[1], d1 + .25 * d2);
  EXPECT_DOUBLE_EQ(got.advantages[0], d0 + .25 * (d1 + .25 * d2));
  EXPECT_DOUBLE_EQ(got.returns[0], got.advantages[0] + 10);
}

TEST(AdvantageTest, TruncationBootstrapsAndCutsTheCarry) {
  Row row = MakeRow({1, 1}, .9);
  row.ends[0] = kCut;
  row.bootstraps[0] = 10;
  row.values = {10, 1000};
  const Advantages got = row.Compute(.95);
  EXPECT_NEAR(got.advantages[0], 1 + .9 * 10 - 10, 1e-12);
}

TEST(AdvantageTest, EachStepHasItsOwnDiscount) {
  Row row = MakeRow({1, 1, 1}, 0);
  row.discounts = {.5, .25, 0};
  const Advantages got = row.Compute(1);
  EXPECT_DOUBLE_EQ(got.returns[0], 1 + .5 * (1 + .25 * 1));
}

TEST(AdvantageTest, ALateStepBelongsToTheTransitionBefore) {
  Row row = MakeRow({1, 2, 3}, .5);
  row.values = {10, 999, 30};  // the value of a step without a decision is never read
  row.active = {1, 0, 1};
  row.last_value = 40;
  const Advantages got = row.Compute(.8);
  const double a2 = 3 + .5 * 40 - 30;
  EXPECT_DOUBLE_EQ(got.advantages[2], a2);
  EXPECT_DOUBLE_EQ(got.advantages[1], 0);
  EXPECT_DOUBLE_EQ(got.advantages[0], (1 + .5 * 2 + .25 * 30 - 10) + .25 * .8 * a2);
}

TEST(AdvantageTest, AnEpisodeThatEndsWhileAWorkerIsAwayStopsThere) {
  Row row = MakeRow({1, 2, 3}, .5);
  row.active = {1, 0, 1};
  row.values = {10, 0, 30};
  row.ends[1] = kEnd;
  EXPECT_DOUBLE_EQ(row.Compute(.8).advantages[0], 1 + .5 * 2 - 10);
  row.ends[1] = kCut;
  row.bootstraps[1] = 8;
  EXPECT_DOUBLE_EQ(row.Compute(.8).advantages[0], 1 + .5 * (2 + .5 * 8) - 10);
}

TEST(AdvantageTest, ARowThatStaysAwayIsClosedByItsLastValue) {
  Row row = MakeRow({1, 2}, .5);
  row.active = {1, 0};
  row.last_value = 4;
  EXPECT_DOUBLE_EQ(row.Compute(.8).advantages[0], 1 + .5 * (2 + .5 * 4));
}

TEST(AdvantageTest, RowsDoNotMix) {
  const std::vector<double> rewards = {1, 100, 2, 200}, zero(4), half(4, .5), last = {0, 0};
  const std::vector<StepEnd> ends(4, kGo);
  const Advantages got = ComputeAdvantages({2, 2, rewards, zero, half, ends, zero, {}, last}, 1);
  EXPECT_DOUBLE_EQ(got.returns[0], 2);
  EXPECT_DOUBLE_EQ(got.returns[1], 200);
}

TEST(AdvantageTest, WrongSizesAreOurBug) {
  Row row = MakeRow({1, 2}, .5);
  row.values.pop_back();
  EXPECT_THROW((void)row.Compute(1), CheckFailure);
}

}  // namespace
}  // namespace dynamix
