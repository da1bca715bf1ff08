#include <algorithm>

#include "dynamix/policies/rules.h"
#include "dynamix/policies/split.h"

namespace dynamix {

StaticPolicy::StaticPolicy(std::optional<int> batch)
    : batch_(batch), name_(batch ? "static:" + std::to_string(*batch) : "static") {}

Decisions StaticPolicy::Decide(const Round& round, const States&, Rng&) {
  Sizes sizes = Holding(round);
  if (batch_) std::fill(sizes.local.begin(), sizes.local.end(), *batch_);
  return sizes;
}

Decisions BalancedPolicy::Decide(const Round& round, const States& states, Rng&) {
  if (global_batch_ == 0) global_batch_ = round.GlobalBatch();
  return SplitOutsideDeadBand(round, global_batch_, states.shares, options_.dead_band);
}

Decisions BasePolicy::Decide(const Round& round, const States& states, Rng&) {
  return SplitOutsideDeadBand(round, BaseBatch(round), states.shares, options_.dead_band);
}

}  // namespace dynamix
