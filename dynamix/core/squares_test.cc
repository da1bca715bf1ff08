#include "dynamix/core/squares.h"

#include <gtest/gtest.h>

#include <vector>

namespace dynamix {
namespace {

template <typename Number>
class SquaresTest : public testing::Test {};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(SquaresTest, Numbers);

// 1, 2, 3, 1, 2, 3, ...: lengths around those of lanes and blocks.
TYPED_TEST(SquaresTest, EveryNumberIsSquaredAndMultipliedOnce) {
  for (const std::size_t count : {0, 1, 3, 31, 32, 33, 2047, 2048, 2049, 5000}) {
    std::vector<TypeParam> numbers;
    double expected = 0;
    for (std::size_t i = 0; i < count; ++i) {
      numbers.push_back(static_cast<TypeParam>(1 + i % 3));
      expected += static_cast<double>((1 + i % 3) * (1 + i % 3));
    }
    EXPECT_EQ(SquaredNorm(numbers.data(), count), expected);
    EXPECT_EQ(Scale(numbers.data(), count, TypeParam{0.5}), expected);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(numbers[i], static_cast<TypeParam>(1 + i % 3) / 2);
    EXPECT_EQ(SquaredNorm(numbers.data(), count), expected / 4);
  }
}

// In single precision alone the sum would stop to grow at 2^24.
TEST(SquaresTest, ManySmallNumbersAddUp) {
  const std::vector<float> ones(std::size_t{1} << 25, 1.0f);
  EXPECT_EQ(SquaredNorm(ones.data(), ones.size()), 0x1p25);
}

}  // namespace
}  // namespace dynamix
