// The search for the best global batch.
#pragma once

#include <algorithm>
#include <cmath>

#include "dynamix/core/round.h"

namespace dynamix {

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
