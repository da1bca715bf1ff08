#include "dynamix/simulator/miniatures/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "dynamix/core/input_error.h"
#include "dynamix/simulator/miniatures/task.h"

namespace dynamix {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

MiniaturePools GaussianPools() { return {nullptr, MakeGaussianPool(11, 4000, 600)}; }

MiniatureOptions TeacherOptions() {
  MiniatureOptions options;
  options.family = MiniatureFamily::kTeacher;
  options.network.inputs = 24;
  options.network.classes = 6;
  options.training_samples = 3000;
  return options;
}

TEST(MiniatureDataTest, FashionSaysWhichFileIsMissingAndWhatToInstall) {
  try {
    LoadFashionPool("no-such-folder");
    FAIL() << "loaded nothing";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no-such-folder"), HasSubstr("train-images"),
                                    HasSubstr("dataset-fashion-mnist")));
  }
}

TEST(MiniatureDataTest, GaussianPoolIsWhiteAndSeeded) {
  const auto pool = MakeGaussianPool(1, 3000, 100, 20);
  ASSERT_EQ(pool->rows.size(), 3100u * 32);
  for (int d = 0; d < 32; ++d) {
    double sum = 0, squares = 0;
    for (int r = 0; r < 3000; ++r) {
      const double x = FromBfloat16(pool->rows[r * 32 + d]);
      sum += x / 3000;
      squares += x * x / 3000;
    }
    EXPECT_NEAR(sum, 0, 0.08);
    EXPECT_NEAR(squares, d < 20 ? 1 : 0, 0.12);
  }
  EXPECT_EQ(pool->rows, MakeGaussianPool(1, 3000, 100, 20)->rows);
  EXPECT_NE(pool->rows, MakeGaussianPool(2, 3000, 100, 20)->rows);
}

TEST(MiniatureDataTest, ScalesFollowThePowerLawWithMeanSquareOne) {
  MiniatureOptions options = TeacherOptions();
  options.spectrum = 1.5;
  options.feature_scale = 2;
  const MiniatureTask task = MakeMiniatureTask(options, GaussianPools());
  double squares = 0;
  for (const float scale : task.scales) squares += scale * scale;
  EXPECT_NEAR(squares, 4 * 24, 1e-3);
  EXPECT_NEAR(task.scales[0] / task.scales[3], std::pow(4, 0.75), 1e-4);  // (d + 1)^(-1.5 / 2)
  EXPECT_EQ(task.scales.size(), 32u);
  EXPECT_EQ(task.scales[24], 0.0f);
}

TEST(MiniatureDataTest, RowsAreDistinctAndTheHeldOutPartIsApart) {
  const MiniatureTask task = MakeMiniatureTask(TeacherOptions(), GaussianPools());
  std::vector<std::uint32_t> rows = task.training.rows;
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(std::unique(rows.begin(), rows.end()), rows.end());
  EXPECT_LT(rows.back(), 4000u);
  for (const std::uint32_t row : task.held_out.rows) EXPECT_GE(row, 4000u);
}

TEST(MiniatureDataTest, EveryClassOccursInTheGaussianFamilies) {
  for (const auto family : {MiniatureFamily::kTeacher, MiniatureFamily::kPrototypes}) {
    MiniatureOptions options = TeacherOptions();
    options.family = family;
    for (options.task_seed = 1; options.task_seed < 6; ++options.task_seed) {
      const MiniatureTask task = MakeMiniatureTask(options, GaussianPools());
      std::vector<int> counts(options.network.classes, 0);
      for (const std::uint8_t label : task.training.labels) ++counts.at(label);
      EXPECT_GT(*std::min_element(counts.begin(), counts.end()), 30);
    }
  }
}

TEST(MiniatureDataTest, LabelNoiseReplacesItsShareOfLabels) {
  MiniatureOptions options = TeacherOptions();
  const MiniaturePools pools = GaussianPools();
  const MiniatureTask clean = MakeMiniatureTask(options, pools);
  options.label_noise = 0.3;
  const MiniatureTask noisy = MakeMiniatureTask(options, pools);
  ASSERT_EQ(clean.training.rows, noisy.training.rows);
  double changed = 0;
  for (std::size_t i = 0; i < clean.training.labels.size(); ++i)
    changed += clean.training.labels[i] != noisy.training.labels[i] ? 1.0 / 3000 : 0;
  EXPECT_NEAR(changed, 0.3 * 5 / 6, 0.03);
}

TEST(MiniatureDataTest, RefusesMoreThanThePoolHas) {
  const MiniaturePools pools = GaussianPools();
  MiniatureOptions options = TeacherOptions();
  options.training_samples = 4001;
  EXPECT_THROW(MakeMiniatureTask(options, pools), InputError);
  options = TeacherOptions();
  options.held_out_samples = 601;
  EXPECT_THROW(MakeMiniatureTask(options, pools), InputError);
  options = TeacherOptions();
  options.family = MiniatureFamily::kFashion;
  EXPECT_THROW(MakeMiniatureTask(options, pools), InputError);
}

}  // namespace
}  // namespace dynamix
