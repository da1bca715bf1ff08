#include "dynamix/ppo/normalizer.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamix {
namespace {

const float kNan = std::nanf("");

TEST(NormalizerTest, GivesColumnsMeanZeroAndDeviationOne) {
  Normalizer normalizer(2);
  std::vector<float> rows;
  for (int i = 0; i < 1000; ++i) {
    rows.push_back(5 + static_cast<float>(i % 10));
    rows.push_back(-100 * static_cast<float>(i % 4));
  }
  normalizer.Update(rows, {});
  std::vector<float> out(rows.size());
  normalizer.Apply(rows, out);
  for (int column = 0; column < 2; ++column) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 1000; ++i) sum += out[i * 2 + column];
    for (int i = 0; i < 1000; ++i) squares += out[i * 2 + column] * out[i * 2 + column];
    EXPECT_NEAR(sum / 1000, 0, 1e-4);
    EXPECT_NEAR(squares / 1000, 1, 1e-3);
  }
}

TEST(NormalizerTest, ForgetsNothingBetweenBatches) {
  Normalizer whole(1), parts(1);
  std::vector<float> rows;
  for (int i = 0; i < 60; ++i) rows.push_back(static_cast<float>(std::sin(i)));
  whole.Update(rows, {});
  for (int i = 0; i < 60; i += 20) parts.Update(std::span<const float>(rows).subspan(i, 20), {});
  EXPECT_NEAR(whole.columns()[0].mean, parts.columns()[0].mean, 1e-12);
  EXPECT_NEAR(whole.columns()[0].variance, parts.columns()[0].variance, 1e-12);
}

TEST(NormalizerTest, MissingInputsAreSkippedAndBecomeTheMean) {
  Normalizer with(1), without(1);
  const float rows[] = {1, kNan, 3, HUGE_VALF, -HUGE_VALF};
  const float present[] = {1, 3};
  with.Update(rows, {});
  without.Update(present, {});
  EXPECT_EQ(with, without);
  float out[5];
  with.Apply(rows, out);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[3], 0);
  EXPECT_EQ(out[4], 0);
  EXPECT_NE(out[0], 0);
}

TEST(NormalizerTest, InactiveRowsTeachNothing) {
  Normalizer with(1), without(1);
  const float rows[] = {1, 1e6, 3};
  const unsigned char active[] = {1, 0, 1};
  const float present[] = {1, 3};
  with.Update(rows, active);
  without.Update(present, {});
  EXPECT_EQ(with, without);
}

TEST(NormalizerTest, ClipsAtTen) {
  Normalizer normalizer(1);
  const float rows[] = {1e30f, -1e30f, 2};
  float out[3];
  normalizer.Apply(rows, out);
  EXPECT_EQ(out[0], 10);
  EXPECT_EQ(out[1], -10);
  EXPECT_NEAR(out[2], 2, 1e-6);
}

TEST(NormalizerTest, AColumnSwitchedOffIsAlwaysMissing) {
  Normalizer normalizer(3);
  const int off[] = {1};
  normalizer.SwitchOff(off);
  const float rows[] = {1, 2, 3, 4, kNan, 6};
  float out[6];
  normalizer.Apply(rows, out);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[4], 0);
  EXPECT_NE(out[0], 0);
  EXPECT_EQ(normalizer.SwitchedOff(), std::vector<int>{1});
}

}  // namespace
}  // namespace dynamix
