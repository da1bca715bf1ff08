// Pollux (Qiao et al. 2021, arXiv 2008.12260), as AdaptDL implements it:
//
//   goodput(B)    = throughput(B) efficiency(B)
//   throughput(B) = B / T_step
//   T_step        = (T_comp^gamma + T_net^gamma)^(1 / gamma)
//   efficiency(B) = ((var + sqr) / (var / s + sqr)) / s        with s = B / B_0
//
// sqr is the squared norm of the gradient and var the variance of its mean over B_0 samples, so
// that var = sqr phi / B_0 with the noise scale phi, and
//
//   efficiency(B) = (phi + B_0) / (phi + B)
//
// whose numerator does not depend on B and is left out. T_comp is the slowest worker's compute
// time, overhead + cost b_i, with b_i balanced (Pollux: equal). T_net is the measured exposed
// exchange: the overlap that gamma models has been taken off it, hence gamma = 1.
#include "dynamix/core/batch_search.h"
#include "dynamix/policies/rules.h"
#include "dynamix/policies/split.h"

namespace dynamix {

Decisions GoodputPolicy::Decide(const Round& round, const States& states, Rng&) {
  if (global_batch_ == 0) global_batch_ = round.GlobalBatch();
  noise_.Add(round);
  time_.Add(round);
  const double noise = options_.scale * noise_.value();
  if (IsMissing(noise) || !time_.known())
    return SplitOutsideDeadBand(round, global_batch_, states.shares, options_.dead_band);

  const TimeCurve curve = time_.Curve(round);
  global_batch_ =
      BestBatch(BoundsOf(round), global_batch_, options_.step, options_.gain,
                [&](double batch) { return batch / curve.IterationMs(batch) / (noise + batch); });
  return SplitOutsideDeadBand(round, global_batch_, time_.Split(round, global_batch_),
                              options_.dead_band);
}

}  // namespace dynamix
