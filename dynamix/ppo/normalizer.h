// Normalizer: running mean and variance per column, in float64; RunningMoments: the same for one
// number.
//
// Merge of a batch (Chan, Golub, LeVeque 1979), starting from count 1e-4, mean 0, variance 1:
//
//   d        = batch mean - mean
//   n        = count + batch count
//   variance = ( variance * count
//              + batch variance * batch count
//              + d^2 * count * batch count / n ) / n
//   mean     = mean + d * batch count / n
//   count    = n
//
// Apply:
//
//   y        = clip((x - mean) / sqrt(variance + 1e-8), -10, 10)
//
// A missing input (NaN, or any non-finite number) is skipped by Update and becomes 0, the mean, in
// Apply; so does a column that is switched off (ablations). Plain values, stored in policy files;
// concurrent Apply is safe. Nothing fails.
#pragma once

#include <span>
#include <vector>

namespace dynamix {

struct RunningMoments {
  double count = 1e-4;
  double mean = 0;
  double variance = 1;

  void Merge(double batch_count, double batch_mean, double batch_variance);
  // Merges the mean and the (biased) variance of `values`; nothing when empty.
  void Update(std::span<const double> values);
  double Deviation() const;  // sqrt(variance + 1e-8)
  bool operator==(const RunningMoments&) const = default;
};

class Normalizer {
 public:
  static constexpr double kClip = 10;

  explicit Normalizer(int width = 0) : columns_(width), switched_off_(width, false) {}

  int width() const { return static_cast<int>(columns_.size()); }
  std::span<RunningMoments> columns() { return columns_; }
  std::span<const RunningMoments> columns() const { return columns_; }
  // Columns forced to missing.
  void SwitchOff(std::span<const int> columns);
  std::vector<int> SwitchedOff() const;

  // Learns from the rows (row-major) whose `active` is not zero; all of them when `active` is
  // empty.
  void Update(std::span<const float> rows, std::span<const unsigned char> active);
  // out = normalised rows; may be the same memory.
  void Apply(std::span<const float> rows, std::span<float> out) const;
  bool operator==(const Normalizer&) const = default;

 private:
  std::vector<RunningMoments> columns_;
  std::vector<bool> switched_off_;
};

}  // namespace dynamix
