#include "dynamix/core/round.h"

#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {

std::vector<int> Batches(const Round& round) {
  std::vector<int> batches;
  batches.reserve(round.entries.size());
  for (const RoundEntry& entry : round.entries) batches.push_back(entry.batch);
  return batches;
}

double BaseBatch(const Round& round) {
  if (round.base_batch > 0 && std::isfinite(round.base_batch)) return round.base_batch;
  double start = 0;
  for (const RoundEntry& entry : round.entries) start += entry.active ? entry.start_batch : 0;
  return start;
}

std::vector<double> SplitGlobalBatch(const Round& round, double global_batch,
                                     const std::vector<double>& weights) {
  DYNAMIX_CHECK(weights.size() == round.entries.size(), "one weight per worker");
  std::vector<double> active_weights;
  std::vector<BatchBounds> bounds;
  for (std::size_t i = 0; i < round.entries.size(); ++i) {
    if (!round.entries[i].active) continue;
    active_weights.push_back(weights[i]);
    bounds.push_back(round.entries[i].bounds);
  }
  const std::vector<double> parts = Distribute(global_batch, active_weights, bounds);
  std::vector<double> split(round.entries.size(), 0);
  for (std::size_t i = 0, next = 0; i < split.size(); ++i)
    if (round.entries[i].active) split[i] = parts[next++];
  return split;
}

GlobalBounds BoundsOf(const Round& round) {
  GlobalBounds bounds;
  for (const RoundEntry& entry : round.entries) {
    if (!entry.active) continue;
    bounds.lowest += entry.bounds.lowest();
    bounds.highest += entry.bounds.highest();
  }
  return bounds;
}

}  // namespace dynamix
