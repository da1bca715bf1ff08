#include "dynamix/core/window_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamix {
namespace {

// Losses 1, 2, 6 and so on: hand-worked means and deviations over n, not n - 1.
TEST(WindowStatisticsTest, GivesMeansSpreadsAndTheLastRate) {
  WindowStatistics window;
  window.Add(1, 0.2, 3, 0.1);
  window.Add(2, 0.4, 5, 0.2);
  window.Add(6, 0.6, 10, 0.3);
  const TrainingReport report = window.Make(50, 0.25);
  EXPECT_DOUBLE_EQ(report.loss, 3);
  EXPECT_DOUBLE_EQ(report.accuracy, 0.4);
  EXPECT_DOUBLE_EQ(report.accuracy_spread, std::sqrt(0.08 / 3));
  EXPECT_DOUBLE_EQ(report.gradient_norm, 6);
  EXPECT_DOUBLE_EQ(report.gradient_norm_spread, std::sqrt(26.0 / 3));
  EXPECT_EQ(report.learning_rate, 0.3);
  EXPECT_EQ(report.noise_scale, 50);
  EXPECT_EQ(report.progress, 0.25);
}

TEST(WindowStatisticsTest, OneIterationHasNoSpreadAndNoneHasNothing) {
  WindowStatistics window;
  EXPECT_TRUE(IsMissing(window.Make(1, 0).loss));
  window.Add(1, 0.5, 2, 0.1);
  const TrainingReport report = window.Make(kMissing, 1.5);
  EXPECT_EQ(report.loss, 1);
  EXPECT_TRUE(IsMissing(report.accuracy_spread));
  EXPECT_TRUE(IsMissing(report.gradient_norm_spread));
  EXPECT_EQ(report.progress, 1) << "a schedule that is over is over";
  EXPECT_TRUE(IsMissing(window.Make(1, kMissing).progress))
      << "a job that plans nothing is not over";
}

TEST(WindowStatisticsTest, GoesOnFromItsNumbersInTheMiddleOfAWindow) {
  WindowStatistics whole, begun, rest;
  for (int i = 0; i < 7; ++i) {
    whole.Add(i * i, 0.1 * i, 1.0 / (i + 1), 0.01 * i);
    if (i < 4) begun.Add(i * i, 0.1 * i, 1.0 / (i + 1), 0.01 * i);
  }
  rest.Restore(begun.Save());
  for (int i = 4; i < 7; ++i) rest.Add(i * i, 0.1 * i, 1.0 / (i + 1), 0.01 * i);
  EXPECT_EQ(rest.Save(), whole.Save());
}

}  // namespace
}  // namespace dynamix
