#include "dynamix/evaluation/pace.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamix {
namespace {

// Loss over seconds.
std::vector<CurvePoint> Curve(const std::vector<std::pair<double, double>>& points) {
  std::vector<CurvePoint> curve;
  for (const auto& [seconds, loss] : points) curve.push_back({.seconds = seconds, .loss = loss});
  return curve;
}

TEST(PaceTest, ARunThatTakesHalfOfTheTimeEverywhereHasHalfOfThePace) {
  const auto slow = Curve({{0, 2}, {10, 1.5}, {40, 1}}), fast = Curve({{0, 2}, {5, 1.5}, {20, 1}});
  EXPECT_NEAR(*LogPace(fast, slow), std::log(0.5), 1e-12);
  EXPECT_NEAR(*LogPace(slow, fast), std::log(2.0), 1e-12);
  EXPECT_NEAR(*LogPace(slow, slow), 0, 1e-12);
}

TEST(PaceTest, IsTheMeanOverTheLossesOnTheWay) {
  // Levels 1.60, 1.55 ... 1.05. Along them one needs 4, 4.5 ... 9.5 s, the other 3.2, 3.6, 4 s down
  // to 1.50, then 4.6, 5.2 ... 9.4 s.
  const auto straight = Curve({{0, 2}, {10, 1}}), bent = Curve({{0, 2}, {4, 1.5}, {10, 1}});
  EXPECT_NEAR(*LogPace(straight, bent), 0.115338, 1e-6);
}

TEST(PaceTest, TheFirstLossesAreLeftOut) {
  // Losses of the first 40 % of the fall differ in time, the others do not.
  const auto one = Curve({{0, 2}, {1, 1.6}, {10, 1}}),
             other = Curve({{0, 2}, {0.9, 1.7}, {1, 1.6}, {10, 1}});
  EXPECT_NEAR(*LogPace(one, other), 0, 1e-12);
}

TEST(PaceTest, OnlyLossesThatBothReachedCount) {
  const auto near = Curve({{0, 2}, {10, 1}}), far = Curve({{0, 2}, {10, 1}, {100, 0.5}});
  EXPECT_NEAR(*LogPace(near, far), 0, 1e-12);
}

TEST(PaceTest, ALossThatComesBackCountsWithItsFirstTime) {
  const auto steady = Curve({{0, 2}, {10, 1}});
  const auto noisy = Curve({{0, 2}, {10, 1}, {20, 1.8}, {30, 0.9}});
  EXPECT_NEAR(*LogPace(noisy, steady), 0, 1e-12);
}

TEST(PaceTest, RunsThatHaveNoLossInCommonHaveNoPace) {
  const auto learns = Curve({{0, 2}, {10, 1}}), diverges = Curve({{0, 2}, {10, 5}});
  EXPECT_FALSE(LogPace(learns, diverges));
  EXPECT_FALSE(LogPace({}, learns));
  EXPECT_FALSE(LogPace(learns, {}));
}

// A plateau just above the target, and an evaluation that is lucky by 1 %: times to 1.0 differ by a
// factor of four, paces hardly.
TEST(PaceTest, HangsLessOnLuckThanATimeToTargetDoes) {
  const auto unlucky = Curve({{0, 2}, {10, 1.2}, {20, 1.01}, {80, 1.0}});
  const auto lucky = Curve({{0, 2}, {10, 1.2}, {20, 1.0}});
  EXPECT_LT(std::exp(*LogPace(unlucky, lucky)), 1.02);
}

}  // namespace
}  // namespace dynamix
