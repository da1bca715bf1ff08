#include "dynamix/core/noise_scale.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {

GradientNoise EstimateNoise(double weighted_squared_norms, double squared_norm, double global_batch,
                            int workers) {
  if (workers < 2 || !(global_batch > 0) || IsMissing(weighted_squared_norms) ||
      IsMissing(squared_norm)) {
    return {};
  }
  GradientNoise noise;
  noise.trace =
      global_batch / (workers - 1) * (weighted_squared_norms / global_batch - squared_norm);
  // Negative only by rounding.
  if (noise.trace < 0) noise.trace = 0;
  noise.squared_norm = squared_norm - noise.trace / global_batch;
  return noise;
}

GradientNoise EstimateNoise(std::span<const double> batches, std::span<const double> squared_norms,
                            double squared_norm) {
  DYNAMIX_CHECK(batches.size() == squared_norms.size(), "one norm per worker");
  double weighted = 0, global_batch = 0;
  int workers = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (!(batches[i] > 0)) continue;
    weighted += batches[i] * squared_norms[i];
    global_batch += batches[i];
    ++workers;
  }
  return EstimateNoise(weighted, squared_norm, global_batch, workers);
}

std::vector<int> GroupWorkers(std::span<const int> batches, int most) {
  std::vector<int> present;
  for (const int batch : batches) {
    DYNAMIX_CHECK(batch >= 0, "a local batch is not negative");
    if (batch > 0) present.push_back(batch);
  }
  DYNAMIX_CHECK(!present.empty(), "at least one worker is present");
  const std::size_t count = std::min(present.size(), static_cast<std::size_t>(most));
  std::vector<int> groups(count, 0);
  for (std::size_t i = 0; i < present.size(); ++i) groups[i * count / present.size()] += present[i];
  return groups;
}

void NoiseScale::Add(const GradientNoise& noise) {
  if (IsMissing(noise.trace) || IsMissing(noise.squared_norm)) return;
  trace_ = memory_ * trace_ + (1 - memory_) * noise.trace;
  squared_norm_ = memory_ * squared_norm_ + (1 - memory_) * noise.squared_norm;
  weight_ = memory_ * weight_ + (1 - memory_);
}

double NoiseScale::value() const {
  // The start correction 1 / weight_ cancels in the ratio.
  if (weight_ == 0 || !(squared_norm_ > 0)) return kMissing;
  return trace_ / squared_norm_;
}

void NoiseMemory::Add(const Round& round) {
  // A noise scale that is not positive has no finite logarithm, and so counts as missing.
  const double log2 =
      MeanOver(round, [](const Report& r) { return std::log2(r.training.noise_scale); });
  log2_ = Smooth(log2_, log2, weight_);
}

double NoiseMemory::value() const { return std::exp2(log2_); }

}  // namespace dynamix
