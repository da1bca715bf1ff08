#include "dynamix/policies/split.h"

#include <cmath>

namespace dynamix {

Sizes Holding(const Round& round) {
  const std::vector<int> batches = Batches(round);
  return {{batches.begin(), batches.end()}};
}

Sizes SplitOutsideDeadBand(const Round& round, double global_batch,
                           const std::vector<double>& weights, double dead_band) {
  Sizes sizes{SplitGlobalBatch(round, global_batch, weights)};
  for (std::size_t i = 0; i < sizes.local.size(); ++i) {
    const RoundEntry& entry = round.entries[i];
    if (!entry.active) continue;
    // Rounding to the granularity is not a reason to move.
    const double gap = std::abs(sizes.local[i] - entry.batch) - 0.5 * entry.bounds.granularity;
    if (gap > dead_band * entry.batch) return sizes;
  }
  return Holding(round);
}

}  // namespace dynamix
