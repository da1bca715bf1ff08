#include "dynamix/simulator/miniatures/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dynamix/core/rng.h"

namespace dynamix {
namespace {

AlignedFloats RandomFloats(std::size_t size, Rng& rng, double deviation = 1) {
  AlignedFloats values(size);
  for (float& value : values) value = static_cast<float>(deviation * rng.Normal());
  return values;
}

TEST(MiniatureKernelsTest, MultiplyEqualsTheTripleLoopForEverySizeAndStride) {
  Rng rng(1);
  for (const int rows : {1, 3, 7, 8, 9, 16, 49, 61}) {
    for (const int columns : {16, 32, 48, 64, 80}) {
      for (const bool transposed : {false, true}) {
        const int depth = 1 + static_cast<int>(rng.Below(70));
        const AlignedFloats left = RandomFloats(rows * depth, rng);
        const AlignedFloats right = RandomFloats(depth * columns, rng);
        const AlignedFloats bias = RandomFloats(columns, rng);
        const StridedMatrix matrix =
            transposed ? StridedMatrix{left.data(), 1, rows} : StridedMatrix{left.data(), depth, 1};
        AlignedFloats result(rows * columns);
        Multiply(rows, columns, depth, matrix, right.data(), columns, bias.data(), 0, result.data(),
                 columns);
        for (int r = 0; r < rows; ++r) {
          for (int c = 0; c < columns; ++c) {
            double expected = bias[c];
            for (int k = 0; k < depth; ++k) {
              expected += static_cast<double>(
                              matrix.data[r * matrix.row_stride + k * matrix.column_stride]) *
                          right[k * columns + c];
            }
            ASSERT_NEAR(result[r * columns + c], expected, 1e-4);
          }
        }
      }
    }
  }
}

TEST(MiniatureKernelsTest, MultiplyAccumulatesIntoItsResult) {
  Rng rng(2);
  const AlignedFloats left = RandomFloats(9 * 5, rng), right = RandomFloats(5 * 16, rng);
  AlignedFloats once(9 * 16, 0.0f), twice(9 * 16, 0.0f);
  for (AlignedFloats* result : {&once, &twice, &twice}) {
    Multiply(9, 16, 5, {left.data(), 5, 1}, right.data(), 16, result->data(), 16, result->data(),
             16);
  }
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_NEAR(twice[i], 2 * once[i], 1e-5);
}

TEST(MiniatureKernelsTest, TanhAndItsSlopeEqualTheLibrary) {
  AlignedFloats x(160), y(160), slope(160, 1.0f);
  for (int i = 0; i < 160; ++i) x[i] = y[i] = 0.2f * static_cast<float>(i - 80);
  Activate(Activation::kTanh, 160, y.data());
  ActivateBackward(Activation::kTanh, 160, y.data(), slope.data());
  for (int i = 0; i < 160; ++i) {
    EXPECT_NEAR(y[i], std::tanh(x[i]), 5e-7);
    EXPECT_NEAR(slope[i], 1 - std::pow(std::tanh(x[i]), 2), 1e-6);
  }
  EXPECT_EQ(y[80], 0.0f);
}

TEST(MiniatureKernelsTest, ActivationsKeepNotANumberSoThatDivergenceIsSeen) {
  for (const Activation activation : {Activation::kRelu, Activation::kTanh}) {
    AlignedFloats x(16, std::numeric_limits<float>::quiet_NaN());
    Activate(activation, 16, x.data());
    for (const float value : x) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(MiniatureKernelsTest, SoftmaxCrossEntropyEqualsDoublePrecision) {
  Rng rng(3);
  constexpr int kRows = 150, kClasses = 7;
  AlignedFloats logits = RandomFloats(kRows * kLanes, rng, 6);
  for (int r = 0; r < kRows; ++r)
    for (int c = kClasses; c < kLanes; ++c) logits[r * kLanes + c] = 0;
  std::vector<std::uint8_t> labels(kRows);
  for (auto& label : labels) label = static_cast<std::uint8_t>(rng.Below(kClasses));
  const AlignedFloats before = logits;
  const LossSum sum = SoftmaxCrossEntropy(kRows, kClasses, labels.data(), logits.data());
  double loss = 0;
  int correct = 0;
  for (int r = 0; r < kRows; ++r) {
    const float* row = &before[r * kLanes];
    double total = 0;
    int best = 0;
    for (int c = 0; c < kClasses; ++c) {
      total += std::exp(static_cast<double>(row[c]));
      if (row[c] > row[best]) best = c;
    }
    loss += std::log(total) - row[labels[r]];
    correct += best == labels[r] ? 1 : 0;
    for (int c = 0; c < kLanes; ++c) {
      const double expected =
          c < kClasses ? std::exp(static_cast<double>(row[c])) / total - (c == labels[r]) : 0;
      ASSERT_NEAR(logits[r * kLanes + c], expected, 1e-6);
    }
  }
  EXPECT_NEAR(sum.loss, loss, 1e-4);
  EXPECT_EQ(sum.correct, correct);
}

TEST(MiniatureKernelsTest, SumsAndNormsAreExactOnSmallIntegers) {
  constexpr int kSize = 112;
  AlignedFloats part(kSize), total(kSize, 1.0f), sums(16, 0.0f);
  for (int i = 0; i < kSize; ++i) part[i] = static_cast<float>(i);
  EXPECT_EQ(SquaredNorm(kSize, part.data()), 111.0 * 112 * 223 / 6);
  EXPECT_EQ(SquaredNormAndAdd(kSize, part.data(), total.data()), 111.0 * 112 * 223 / 6);
  for (int i = 0; i < kSize; ++i) EXPECT_EQ(total[i], static_cast<float>(i + 1));
  AddColumnSums(3, 16, part.data(), sums.data());
  for (int c = 0; c < 16; ++c) EXPECT_EQ(sums[c], static_cast<float>(3 * c + 48));
}

TEST(MiniatureKernelsTest, GathersRowsOfRoundedFloats) {
  EXPECT_EQ(FromBfloat16(ToBfloat16(-1.5f)), -1.5f);
  EXPECT_NEAR(FromBfloat16(ToBfloat16(3.14159f)), 3.14159, 3.14159 / 256);
  AlignedHalves source(3 * 32);
  for (int i = 0; i < 96; ++i) source[i] = ToBfloat16(static_cast<float>(i));
  const std::vector<std::uint32_t> rows = {2, 0};
  AlignedFloats scale(16, 0.5f), out(32);
  GatherScaled(2, 16, rows.data(), source.data(), 32, scale.data(), out.data());
  EXPECT_EQ(out[3], 0.5f * 67);
  EXPECT_EQ(out[16 + 5], 0.5f * 5);
}

TEST(MiniatureKernelsTest, MomentumStepEqualsHandWorkedNumbers) {
  AlignedFloats gradient(16, 4.0f), velocity(16, 0.0f), weights(16, 1.0f);
  SgdStep(16, gradient.data(), 0.5f, 0.1f, 0.9f, velocity.data(), weights.data());
  EXPECT_FLOAT_EQ(weights[0], 0.8f);  // v = 2
  SgdStep(16, gradient.data(), 0.5f, 0.1f, 0.9f, velocity.data(), weights.data());
  EXPECT_FLOAT_EQ(weights[0], 0.42f);  // v = 3.8
}

}  // namespace
}  // namespace dynamix
