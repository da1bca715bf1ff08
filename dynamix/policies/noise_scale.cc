#include <algorithm>
#include <cmath>

#include "dynamix/policies/rules.h"
#include "dynamix/policies/split.h"

namespace dynamix {
namespace {

// Weight of the newest window in the smoothed noise scale.
constexpr double kSmoothing = 0.3;

}  // namespace

Decisions NoiseScalePolicy::Decide(const Round& round, const States& states, Rng& rng) {
  log_noise_ = Smooth(log_noise_, LogNoise(round), kSmoothing);
  if (IsMissing(log_noise_)) return balanced_.Decide(round, states, rng);

  if (global_batch_ == 0) global_batch_ = round.GlobalBatch();
  const GlobalBounds bounds = BoundsOf(round);
  const double target = std::clamp(std::exp2(log_noise_), bounds.lowest, bounds.highest);
  if (std::abs(std::log2(target / global_batch_)) > std::log2(1 + dead_band_)) {
    global_batch_ =
        std::clamp(target, global_batch_ / largest_step_, global_batch_ * largest_step_);
  }
  return SplitOutsideDeadBand(round, global_batch_, states.shares, 0.05);
}

}  // namespace dynamix
