#include <algorithm>
#include <cmath>

#include "dynamix/policies/rules.h"
#include "dynamix/policies/split.h"

namespace dynamix {

Decisions NoiseScalePolicy::Decide(const Round& round, const States& states, Rng& rng) {
  noise_.Add(round);
  if (IsMissing(noise_.value())) return balanced_.Decide(round, states, rng);

  if (global_batch_ == 0) global_batch_ = round.GlobalBatch();
  const GlobalBounds bounds = BoundsOf(round);
  const double target = std::clamp(options_.scale * noise_.value(), bounds.lowest, bounds.highest);
  if (std::abs(std::log2(target / global_batch_)) > std::log2(1 + options_.dead_band)) {
    global_batch_ =
        std::clamp(target, global_batch_ / options_.step, global_batch_ * options_.step);
  }
  return SplitOutsideDeadBand(round, global_batch_, states.shares, options_.shares);
}

}  // namespace dynamix
