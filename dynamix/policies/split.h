// What the rules share: holding, and splitting a global batch with a dead band.
#pragma once

#include <vector>

#include "dynamix/core/policy.h"

namespace dynamix {

// Every worker keeps its batch.
Sizes Holding(const Round& round);

// The split of `global_batch` by `weights`, or Holding when no active worker is more than
// `dead_band` off it.
Sizes SplitOutsideDeadBand(const Round& round, double global_batch,
                           const std::vector<double>& weights, double dead_band);

}  // namespace dynamix
