#include "dynamix/core/batch.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {

void BatchBounds::Validate(std::string_view field) const {
  const std::string prefix(field);
  RequireInRange(prefix + ".min", min, 1, kLargestBatch);
  RequireInRange(prefix + ".max", max, min, kLargestBatch);
  RequireInRange(prefix + ".granularity", granularity, 1, kLargestBatch);
  if (!(dead_band >= 0 && dead_band < 1)) {
    throw InputError::OutOfRange(prefix + ".dead_band", dead_band, "a value in [0, 1)");
  }
  if (lowest() > highest()) {
    throw InputError::OutOfRange(
        prefix + ".granularity", granularity,
        "a multiple of it in [" + std::to_string(min) + ", " + std::to_string(max) + "]");
  }
}

int BatchBounds::lowest() const { return (min + granularity - 1) / granularity * granularity; }
int BatchBounds::highest() const { return max / granularity * granularity; }

int ClampBatch(double wanted, int current, const BatchBounds& bounds) {
  const int lowest = bounds.lowest(), highest = bounds.highest();
  const bool legal = current >= lowest && current <= highest && current % bounds.granularity == 0;
  if (std::isnan(wanted)) wanted = current;
  const double inside = std::clamp<double>(wanted, lowest, highest);
  // Lowest and highest are multiples, so the nearest one is between them.
  const int nearest =
      static_cast<int>(std::lround(inside / bounds.granularity)) * bounds.granularity;
  if (legal && std::abs(nearest - current) < bounds.dead_band * current) return current;
  return nearest;
}

namespace {

// Replaces unusable weights by the mean of the usable ones (1 when there are none).
std::vector<double> UsableWeights(const std::vector<double>& weights) {
  const auto usable = [](double w) { return std::isfinite(w) && w > 0; };
  double sum = 0;
  int count = 0;
  for (double w : weights) {
    if (!usable(w)) continue;
    sum += w;
    ++count;
  }
  std::vector<double> result = weights;
  for (double& w : result)
    if (!usable(w)) w = count > 0 ? sum / count : 1;
  return result;
}

}  // namespace

std::vector<double> Distribute(double total, const std::vector<double>& weights,
                               const std::vector<BatchBounds>& bounds) {
  DYNAMIX_CHECK(weights.size() == bounds.size(), "one weight per bound");
  const std::vector<double> usable = UsableWeights(weights);
  const std::size_t count = weights.size();
  std::vector<double> parts(count);
  double weight_sum = 0;
  for (double w : usable) weight_sum += w;
  bool inside = true;
  for (std::size_t i = 0; i < count; ++i) {
    parts[i] = total * usable[i] / weight_sum;
    inside = inside && parts[i] >= bounds[i].lowest() && parts[i] <= bounds[i].highest();
  }
  if (inside) return parts;

  // part_i(level) = clamp(level * weight_i) grows with the level, so the level that gives `total`
  // is found by bisection over the points where a part meets a bound; 60 halvings reach the last
  // bit of a double.
  const auto part = [&](std::size_t i, double level) {
    return std::clamp<double>(level * usable[i], bounds[i].lowest(), bounds[i].highest());
  };
  double low = 0, high = 0;
  for (std::size_t i = 0; i < count; ++i) high = std::max(high, bounds[i].highest() / usable[i]);
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (low + high);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += part(i, middle);
    (sum < total ? low : high) = middle;
  }
  for (std::size_t i = 0; i < count; ++i) parts[i] = part(i, high);
  return parts;
}

}  // namespace dynamix
