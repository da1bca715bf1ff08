#include "dynamix/core/squares.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>

#include "dynamix/core/simd.h"

namespace dynamix {
namespace {

// The sum of what `visit` makes of every number: of a block in lanes, as vector units do it, and of
// all blocks in double.
template <typename Number, typename Visit>
[[gnu::always_inline]] inline double Sum(Number* numbers, std::size_t count, const Visit& visit) {
  constexpr std::size_t kLanes = 32, kBlock = 64 * kLanes;
  double sum = 0;
  for (std::size_t i = 0; i < count;) {
    const std::size_t end = std::min(count, i + kBlock);
    std::array<std::remove_const_t<Number>, kLanes> lanes{};
    for (; i + kLanes <= end; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += visit(numbers[i + lane]);
    for (; i < end; ++i) lanes[0] += visit(numbers[i]);
    sum = std::accumulate(lanes.begin(), lanes.end(), sum);
  }
  return sum;
}

template <typename Number>
[[gnu::always_inline]] inline double ScaleAll(Number* numbers, std::size_t count, Number factor) {
  return Sum(numbers, count, [factor](Number& number) {
    const Number before = number;
    number = before * factor;
    return before * before;
  });
}

constexpr auto kSquare = [](const auto& number) { return number * number; };

}  // namespace

DYNAMIX_SIMD double SquaredNorm(const float* numbers, std::size_t count) {
  return Sum(numbers, count, kSquare);
}

DYNAMIX_SIMD double SquaredNorm(const double* numbers, std::size_t count) {
  return Sum(numbers, count, kSquare);
}

DYNAMIX_SIMD double Scale(float* numbers, std::size_t count, float factor) {
  return ScaleAll(numbers, count, factor);
}

DYNAMIX_SIMD double Scale(double* numbers, std::size_t count, double factor) {
  return ScaleAll(numbers, count, factor);
}

}  // namespace dynamix
