// The global batch that brings the job to its target soonest, under its learning-rate rule and its
// schedule (core/time_to_go.h), with the iteration time of core/time_line.h.
#include "dynamix/core/batch_search.h"
#include "dynamix/policies/rules.h"
#include "dynamix/policies/split.h"

namespace dynamix {

Decisions CompositePolicy::Decide(const Round& round, const States& states, Rng&) {
  noise_.Add(round);
  time_.Add(round);
  const double noise = noise_.value(), base = BaseBatch(round);
  if (IsMissing(noise) || !time_.known() || !(base > 0))
    return SplitOutsideDeadBand(round, base, states.shares, options_.dead_band);

  const TimeToGo to_go(round, noise, options_.to_go);
  const TimeCurve curve = time_.Curve(round);
  if (global_batch_ == 0) global_batch_ = base;
  global_batch_ =
      BestBatch(BoundsOf(round), global_batch_, options_.step, options_.gain,
                [&](double batch) { return to_go.Speed(batch, curve.IterationMs(batch)); });
  return SplitOutsideDeadBand(round, global_batch_, time_.Split(round, global_batch_),
                              options_.dead_band);
}

}  // namespace dynamix
