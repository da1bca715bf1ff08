#include "dynamix/simulator/miniatures/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

TEST(MiniatureOptionsTest, NamesTheFieldItRefuses) {
  MiniatureOptions options;
  options.Validate();
  options.label_noise = 0.95;
  try {
    options.Validate();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("label_noise = 0.95"));
  }
}

TEST(MiniatureOptionsTest, RandomMiniaturesAreValidVariedAndSeeded) {
  Rng rng(1), again(1);
  std::set<int> rules, schedules, kinds, families, layers;
  double smallest_batch = 1e9, largest_batch = 0;
  for (int i = 0; i < 300; ++i) {
    const MiniatureOptions options = RandomMiniature(rng);
    options.Validate();
    const OptimizerOptions& optimizer = options.optimizer;
    EXPECT_EQ(options.seed, RandomMiniature(again).seed);
    EXPECT_LE(optimizer.base_batch * 16, options.training_samples);
    EXPECT_GE(optimizer.planned_samples, options.training_samples - 1);
    EXPECT_LE(optimizer.planned_samples, 60 * options.training_samples + 1);
    EXPECT_LE(optimizer.learning_rate, 3 * ReferenceLearningRate(options) * 1.0001);
    rules.insert(static_cast<int>(optimizer.rule));
    schedules.insert(static_cast<int>(optimizer.schedule));
    kinds.insert(static_cast<int>(optimizer.kind));
    families.insert(static_cast<int>(options.family));
    layers.insert(options.network.second_hidden > 0);
    smallest_batch = std::min(smallest_batch, optimizer.base_batch);
    largest_batch = std::max(largest_batch, optimizer.base_batch);
  }
  EXPECT_EQ(rules.size(), 4u);
  EXPECT_EQ(schedules.size(), 4u);
  EXPECT_EQ(kinds.size(), 2u);
  EXPECT_EQ(families.size(), 2u);
  EXPECT_EQ(layers.size(), 2u);
  EXPECT_LT(smallest_batch, 20);
  EXPECT_GT(largest_batch, 200);
}

TEST(MiniatureOptionsTest, HeldOutRangesLieOutsideWhenAskedTo) {
  MiniatureRanges ranges;
  ranges.families = {MiniatureFamily::kPrototypes};
  ranges.hidden = {48, 64};
  ranges.spectrum = {1.25, 1.6};
  Rng rng(2);
  for (int i = 0; i < 50; ++i) {
    const MiniatureOptions options = RandomMiniature(rng, ranges);
    EXPECT_EQ(options.family, MiniatureFamily::kPrototypes);
    EXPECT_GE(options.network.hidden, 48);
    EXPECT_GE(options.spectrum, 1.25);
  }
}

}  // namespace
}  // namespace dynamix
