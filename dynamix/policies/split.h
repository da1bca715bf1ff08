// What the rules share: holding, splitting a global batch with a dead band, remembering the noise
// scale, and searching for the best global batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "dynamix/core/policy.h"

namespace dynamix {

// Every worker keeps its batch.
Sizes Holding(const Round& round);

// The split of `global_batch` by `weights`, or Holding when no active worker is more than
// `dead_band` off it.
Sizes SplitOutsideDeadBand(const Round& round, double global_batch,
                           const std::vector<double>& weights, double dead_band);

// The noise scale that workers report, averaged over them and smoothed over rounds, in logarithms.
class NoiseMemory {
 public:
  explicit NoiseMemory(double weight) : weight_(weight) {}  // weight: of a new round, (0, 1]
  void Add(const Round& round);
  // In samples; missing before anybody reported one.
  double value() const;
  void VisitMemory(Memory& memory) { memory(log2_); }

 private:
  double weight_;
  double log2_ = kMissing;
};

// The global batch with the highest `value` on a geometric grid over the legal ones, at most a
// factor of `step` away from the present one; the present one unless another is better by `gain`,
// so that measurement noise does not move it.
template <typename Value>
double BestBatch(const GlobalBounds& bounds, double present, double step, double gain,
                 Value value) {
  constexpr double kGridRatio = 1.05;
  if (!(bounds.lowest > 0)) return present;  // nobody is active
  const double current = std::clamp(present, bounds.lowest, bounds.highest);
  const double low = std::max(bounds.lowest, current / step);
  const double high = std::min(bounds.highest, current * step);
  const int points = static_cast<int>(std::ceil(std::log(high / low) / std::log(kGridRatio)));
  double best = current, best_value = value(current) * (1 + gain);
  for (int i = 0; i <= points; ++i) {
    const double batch =
        low * std::pow(high / low, points > 0 ? static_cast<double>(i) / points : 0);
    const double found = value(batch);
    if (!(found > best_value)) continue;
    best = batch;
    best_value = found;
  }
  return best;
}

}  // namespace dynamix
