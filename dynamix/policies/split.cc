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

void NoiseMemory::Add(const Round& round) {
  // A noise scale that is not positive has no finite logarithm, and so counts as missing.
  const double log2 =
      MeanOver(round, [](const Report& r) { return std::log2(r.training.noise_scale); });
  log2_ = Smooth(log2_, log2, weight_);
}

double NoiseMemory::value() const { return std::exp2(log2_); }

}  // namespace dynamix
