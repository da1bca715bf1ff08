// Pace: how much time one run takes over another of the same job, to the same held-out losses.
//
// A time to target hangs on one moment: near a flat end of the curve a lucky evaluation ends a run
// that an unlucky one lets go on for half of its time again. A pace is the mean over many losses on
// the way, so that it tells policies apart with less than half of the error (docs/judge.md). It says
// nothing of losses that only one of the two reached: time to target does. Pure.
#pragma once

#include <optional>
#include <vector>

#include "dynamix/record/job_result.h"

namespace dynamix {

// Logarithm of the mean ratio of times; below 0 is faster than `baseline`. None when the two have no
// losses below their start in common.
std::optional<double> LogPace(const std::vector<CurvePoint>& curve,
                              const std::vector<CurvePoint>& baseline);

}  // namespace dynamix
