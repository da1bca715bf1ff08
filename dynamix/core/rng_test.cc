#include "dynamix/core/rng.h"

#include <gtest/gtest.h>

#include <cmath>

namespace dynamix {
namespace {

TEST(RngTest, SameSeedSameNumbers) {
  Rng a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto x = a.Next();
    EXPECT_EQ(x, b.Next());
    differs = differs || x != c.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(RngTest, ASavedStateContinues) {
  Rng a(7);
  a.Normal();
  Rng b(a.state());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.Normal(), b.Normal());
}

TEST(RngTest, MomentsAreRight) {
  Rng rng(1);
  double sum = 0, squares = 0, uniform = 0;
  const int n = 200000;
  for (int i = 0; i < n; ++i) {
    const double x = rng.Normal();
    sum += x;
    squares += x * x;
    uniform += rng.Uniform();
  }
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(uniform / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
}

TEST(RngTest, BelowIsUniformAndInRange) {
  Rng rng(2);
  int counts[7] = {};
  const int n = 70000;
  for (int i = 0; i < n; ++i) ++counts[rng.Below(7)];
  for (int count : counts) EXPECT_NEAR(count, n / 7, 5 * std::sqrt(n / 7.0));
}

TEST(RngTest, ForksAreIndependentAndDoNotAdvanceTheParent) {
  Rng parent(3);
  const Rng before = parent;
  Rng a = parent.Fork(1), b = parent.Fork(2), again = parent.Fork(1);
  EXPECT_EQ(parent.state(), before.state());
  EXPECT_NE(a.state(), b.state());
  EXPECT_EQ(a.Next(), again.Next());
  double correlation = 0;
  for (int i = 0; i < 10000; ++i) correlation += a.Normal() * b.Normal();
  EXPECT_NEAR(correlation / 10000, 0, 0.05);
}

}  // namespace
}  // namespace dynamix
