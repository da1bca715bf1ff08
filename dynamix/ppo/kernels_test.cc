#include "dynamix/ppo/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "dynamix/core/rng.h"

namespace dynamix {
namespace {

template <typename T>
std::vector<T> Random(std::size_t count, Rng& rng) {
  std::vector<T> values(count);
  for (T& x : values) x = static_cast<T>(rng.Normal());
  return values;
}

std::size_t At(int features, int row, int feature) {
  return (static_cast<std::size_t>(row / kBlockRows) * features + feature) * kBlockRows +
         row % kBlockRows;
}

template <typename T>
void ExpectLayerMatchesPlainLoops(DenseShape s, double tolerance) {
  Rng rng(1);
  const int blocks = 3, rows = blocks * kBlockRows;
  const auto w = Random<T>(s.in * s.out, rng), b = Random<T>(s.out, rng);
  const auto x = Random<T>(rows * s.in, rng), dy = Random<T>(rows * s.out, rng);
  std::vector<T> y(rows * s.out), dx(rows * s.in), dw(s.in * s.out, T(1)), db(s.out, T(2));
  DenseForward(s, w.data(), b.data(), x.data(), blocks, y.data());
  DenseBackwardInput(s, w.data(), dy.data(), blocks, dx.data());
  DenseBackwardWeights(s, x.data(), dy.data(), blocks, dw.data(), db.data());
  for (int r = 0; r < rows; ++r) {
    for (int o = 0; o < s.out; ++o) {
      double want = b[o];
      for (int i = 0; i < s.in; ++i) want += double(w[o * s.in + i]) * x[At(s.in, r, i)];
      EXPECT_NEAR(y[At(s.out, r, o)], want, tolerance);
    }
    for (int i = 0; i < s.in; ++i) {
      double want = 0;
      for (int o = 0; o < s.out; ++o) want += double(w[o * s.in + i]) * dy[At(s.out, r, o)];
      EXPECT_NEAR(dx[At(s.in, r, i)], want, tolerance);
    }
  }
  for (int o = 0; o < s.out; ++o) {
    double bias = 2;
    for (int r = 0; r < rows; ++r) bias += dy[At(s.out, r, o)];
    EXPECT_NEAR(db[o], bias, tolerance * 10);
    for (int i = 0; i < s.in; ++i) {
      double want = 1;
      for (int r = 0; r < rows; ++r) want += double(dy[At(s.out, r, o)]) * x[At(s.in, r, i)];
      EXPECT_NEAR(dw[o * s.in + i], want, tolerance * 10);
    }
  }
}

TEST(KernelsTest, DenseLayersMatchPlainLoops) {
  for (const DenseShape shape : {DenseShape{16, 64}, DenseShape{64, 5}, DenseShape{7, 13},
                                 DenseShape{1, 1}, DenseShape{64, 64}, DenseShape{33, 1}}) {
    ExpectLayerMatchesPlainLoops<float>(shape, 2e-5);
    ExpectLayerMatchesPlainLoops<double>(shape, 1e-12);
  }
}

TEST(KernelsTest, TanhIsAccurateToAFewBits) {
  for (double x = -12; x <= 12; x += 0.0137) {
    float y = static_cast<float>(x);
    Tanh(&y, 1);
    EXPECT_NEAR(y, std::tanh(static_cast<double>(static_cast<float>(x))), 3e-7);
  }
}

TEST(KernelsTest, ExpIsAccurateAndExactlyOneAtZero) {
  for (double x = -80; x <= 80; x += 0.0731) {
    const auto in = static_cast<float>(x);
    float y = 0;
    Exp(&in, &y, 1);
    EXPECT_NEAR(y / std::exp(static_cast<double>(in)), 1, 3e-7);
  }
  const float ends[] = {0, -1e8f, -100, 1000};
  float y[4];
  Exp(ends, y, 4);
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_TRUE(std::isfinite(y[3]));
}

TEST(KernelsTest, ANumberThatIsNoneStaysVisibleThroughTanh) {
  float y = std::nanf("");
  Tanh(&y, 1);
  EXPECT_TRUE(std::isnan(y));
}

TEST(KernelsTest, LogSoftmaxOfAnIllegalActionLeavesTheOthersWhole) {
  std::vector<float> z(3 * kBlockRows, 0.5f);
  for (int r = 0; r < kBlockRows; ++r) z[2 * kBlockRows + r] = -1e8f;
  LogSoftmax(z.data(), 3);
  EXPECT_NEAR(z[0], std::log(0.5), 1e-7);
  EXPECT_NEAR(z[kBlockRows], std::log(0.5), 1e-7);
  EXPECT_LT(z[2 * kBlockRows], -9e7f);
}

}  // namespace
}  // namespace dynamix
