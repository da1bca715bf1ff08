#include "dynamix/ppo/normalizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dynamix/core/check.h"
#include "dynamix/core/simd.h"

namespace dynamix {
namespace {

constexpr double kEpsilon = 1e-8;
constexpr float kLargest = std::numeric_limits<float>::max();

// The comparisons are false for NaN, so a missing input ends as 0.
DYNAMIX_SIMD void ApplyRow(const float* in, const double* mean, const double* scale, int width,
                           float* out) {
  for (int c = 0; c < width; ++c) {
    const float x = in[c];
    double y = (x - mean[c]) * scale[c];
    y = y > Normalizer::kClip ? Normalizer::kClip : y;
    y = y < -Normalizer::kClip ? -Normalizer::kClip : y;
    out[c] = x >= -kLargest && x <= kLargest ? static_cast<float>(y) : 0.0f;
  }
}

// Per-column count and sum of finite inputs, then sum of squares around the batch mean.
DYNAMIX_SIMD void AddRow(const float* in, int width, double* count, double* sum) {
  for (int c = 0; c < width; ++c) {
    const bool here = in[c] >= -kLargest && in[c] <= kLargest;
    count[c] += here ? 1.0 : 0.0;
    sum[c] += here ? static_cast<double>(in[c]) : 0.0;
  }
}
DYNAMIX_SIMD void AddSquares(const float* in, int width, const double* mean, double* squares) {
  for (int c = 0; c < width; ++c) {
    const bool here = in[c] >= -kLargest && in[c] <= kLargest;
    const double d = in[c] - mean[c];
    squares[c] += here ? d * d : 0.0;
  }
}

}  // namespace

void RunningMoments::Merge(double batch_count, double batch_mean, double batch_variance) {
  if (!(batch_count > 0)) return;
  const double d = batch_mean - mean, total = count + batch_count;
  variance =
      (variance * count + batch_variance * batch_count + d * d * count * batch_count / total) /
      total;
  mean += d * batch_count / total;
  count = total;
}

void RunningMoments::Update(std::span<const double> values) {
  if (values.empty()) return;
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double x : values) sum += x;
  for (const double x : values) squares += (x - sum / n) * (x - sum / n);
  Merge(n, sum / n, squares / n);
}

double RunningMoments::Deviation() const { return std::sqrt(variance + kEpsilon); }

void Normalizer::SwitchOff(std::span<const int> columns) {
  std::fill(switched_off_.begin(), switched_off_.end(), false);
  for (const int column : columns) {
    DYNAMIX_CHECK(column >= 0 && column < width(), "a column that is switched off exists");
    switched_off_[column] = true;
  }
}

std::vector<int> Normalizer::SwitchedOff() const {
  std::vector<int> columns;
  for (int c = 0; c < width(); ++c)
    if (switched_off_[c]) columns.push_back(c);
  return columns;
}

void Normalizer::Update(std::span<const float> rows, std::span<const unsigned char> active) {
  const int columns = width();
  const std::size_t count = rows.size() / columns;
  DYNAMIX_CHECK(count * columns == rows.size(), "rows are whole");
  DYNAMIX_CHECK(active.empty() || active.size() == count, "one flag per row");
  std::vector<double> n(columns), mean(columns), squares(columns);
  auto used = [&](std::size_t row) { return active.empty() || active[row] != 0; };
  for (std::size_t row = 0; row < count; ++row)
    if (used(row)) AddRow(&rows[row * columns], columns, n.data(), mean.data());
  for (int c = 0; c < columns; ++c) mean[c] /= std::max(n[c], 1.0);
  for (std::size_t row = 0; row < count; ++row)
    if (used(row)) AddSquares(&rows[row * columns], columns, mean.data(), squares.data());
  for (int c = 0; c < columns; ++c)
    columns_[c].Merge(n[c], mean[c], squares[c] / std::max(n[c], 1.0));
}

void Normalizer::Apply(std::span<const float> rows, std::span<float> out) const {
  const int columns = width();
  const std::size_t count = rows.size() / columns;
  DYNAMIX_CHECK(count * columns == rows.size() && out.size() == rows.size(), "rows are whole");
  std::vector<double> mean(columns), scale(columns);
  for (int c = 0; c < columns; ++c) {
    mean[c] = columns_[c].mean;
    scale[c] = switched_off_[c] ? 0.0 : 1 / columns_[c].Deviation();
  }
  for (std::size_t row = 0; row < count; ++row)
    ApplyRow(&rows[row * columns], mean.data(), scale.data(), columns, &out[row * columns]);
}

}  // namespace dynamix
