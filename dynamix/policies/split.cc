#include "dynamix/policies/split.h"

#include <cmath>

namespace dynamix {

Sizes Holding(const Round& round) {
  Sizes sizes;
  for (const RoundEntry& entry : round.entries) sizes.local.push_back(entry.batch);
  return sizes;
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

double LogNoise(const Round& round) {
  double sum = 0;
  int count = 0;
  for (const RoundEntry& entry : round.entries) {
    if (!entry.active || !entry.report) continue;
    const double noise = entry.report->training.noise_scale;
    if (IsMissing(noise) || noise <= 0) continue;
    sum += std::log2(noise);
    ++count;
  }
  return count > 0 ? sum / count : kMissing;
}

}  // namespace dynamix
