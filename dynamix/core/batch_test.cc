#include "dynamix/core/batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "dynamix/core/input_error.h"
#include "dynamix/core/rng.h"

namespace dynamix {
namespace {

TEST(BatchBoundsTest, RefusesNonsenseAndNamesTheField) {
  const auto message = [](BatchBounds bounds) {
    try {
      bounds.Validate("node.bounds");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({.min = 8, .max = 64}), "");
  EXPECT_NE(message({.min = 0, .max = 64}).find("node.bounds.min = 0"), std::string::npos);
  EXPECT_NE(message({.min = 8, .max = 4}).find("node.bounds.max = 4"), std::string::npos);
  EXPECT_NE(message({.min = 9, .max = 15, .granularity = 8}).find("granularity = 8"),
            std::string::npos);
  EXPECT_NE(message({.dead_band = 1.5}).find("[0, 1)"), std::string::npos);
}

TEST(ClampBatchTest, RoundsToTheGranularityInsideTheBounds) {
  const BatchBounds bounds{.min = 10, .max = 100, .granularity = 8};
  EXPECT_EQ(ClampBatch(0, 16, bounds), 16);
  EXPECT_EQ(ClampBatch(1e9, 16, bounds), 96);
  EXPECT_EQ(ClampBatch(43, 16, bounds), 40);
  EXPECT_EQ(ClampBatch(std::nan(""), 24, bounds), 24);
  EXPECT_EQ(ClampBatch(std::nan(""), 3, bounds), 16);
}

TEST(ClampBatchTest, SmallChangesAreNotMadeInsideTheDeadBand) {
  const BatchBounds bounds{.min = 1, .max = 1000, .dead_band = 0.1};
  EXPECT_EQ(ClampBatch(105, 100, bounds), 100);
  EXPECT_EQ(ClampBatch(115, 100, bounds), 115);
  EXPECT_EQ(ClampBatch(1005, 2000, bounds), 1000)
      << "an illegal batch is left whatever the dead band";
}

TEST(DistributeTest, IsProportionalWhenNothingBinds) {
  const std::vector<BatchBounds> bounds(3, {.min = 1, .max = 1000});
  const auto parts = Distribute(600, {3, 2, 1}, bounds);
  EXPECT_NEAR(parts[0], 300, 1e-9);
  EXPECT_NEAR(parts[2], 100, 1e-9);
}

TEST(DistributeTest, GivesToOthersWhatOneCannotTake) {
  const std::vector<BatchBounds> bounds = {
      {.min = 1, .max = 100}, {.min = 1, .max = 1000}, {.min = 50, .max = 1000}};
  const auto parts = Distribute(600, {10, 2, 0.01}, bounds);
  EXPECT_NEAR(parts[0], 100, 1e-6);
  EXPECT_NEAR(parts[1], 450, 1e-6);
  EXPECT_NEAR(parts[2], 50, 1e-6);
}

TEST(DistributeTest, KeepsTheTotalAndTheBoundsForAnyInput) {
  Rng rng(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const int count = 1 + static_cast<int>(rng.Below(20));
    std::vector<BatchBounds> bounds;
    std::vector<double> weights;
    double lowest = 0, highest = 0;
    for (int i = 0; i < count; ++i) {
      const int min = 1 + static_cast<int>(rng.Below(50));
      bounds.push_back({.min = min, .max = min + static_cast<int>(rng.Below(500))});
      lowest += bounds.back().lowest();
      highest += bounds.back().highest();
      const double odd[] = {0, -1, std::nan(""), HUGE_VAL};
      weights.push_back(rng.Uniform() < 0.1 ? odd[rng.Below(4)] : rng.LogUniform(1e-3, 1e3));
    }
    const double total = rng.Uniform(0, 1.5 * highest);
    const auto parts = Distribute(total, weights, bounds);
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    EXPECT_NEAR(sum, std::clamp(total, lowest, highest), 1e-6 * highest);
    for (int i = 0; i < count; ++i) {
      EXPECT_GE(parts[i], bounds[i].lowest() - 1e-9);
      EXPECT_LE(parts[i], bounds[i].highest() + 1e-9);
    }
  }
}

}  // namespace
}  // namespace dynamix
