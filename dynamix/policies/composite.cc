// The global batch that brings the job to its target soonest, under its learning-rate rule and its
// schedule.
//
// One step. With rate eta, gradient G, curvature h and noise scale phi, a step at global batch B
// lowers the loss, to second order, by (McCandlish et al. 2018, arXiv 1812.06162, section 2.2)
//
//   eta |G|^2 (1 - eta h / 2 - (eta h / 2) phi / B)
//
// The rate is eta_0 sigma f: the base rate, the schedule's factor, and the rule's factor f(B), which
// is 1 at the base batch B_0. In units of eta_0 sigma |G|^2, a step is worth
//
//   P(B) = f (1 - curvature - noise)
//   curvature = k_c sigma f                 0 with AdaScale, whose f is chosen so that the rate is
//                                           safe for the noise at B
//   noise     = k_n w f B_0 / B
//   w         = phi / (phi + B_0)
//
// Nobody measures h. The noise term does not follow from the measured phi either: phi grows with
// training until the term is near 1 at whatever batch the job runs (the noise floor), so it would
// ask for more and more samples. What is known is that the user chose the base batch: noise takes
// the part k_n of a step there, and elsewhere the part grows with f B_0 / B, the job's temperature
// (rate over batch) relative to its base. While phi is far below B_0 there is no noise to speak of,
// hence w.
//
// The schedule. It runs by samples: at s = samples seen over samples planned, x S more samples (S
// planned) at batch B are x S / B steps and bring the job forward by
//
//   D(B, x) = S P(B) / B * integral of sigma from s to s + x
//
// A large batch whose rate does not grow with it uses up the schedule before the target is reached;
// a linear rule loses nothing. How far away the target is, is not known. It is taken as far as the
// base batch gets in the part `horizon` of what is left of the schedule:
//
//   D* = D(B_0, horizon (1 - s))
//
// With x(B) the solution of D(B, x) = D*, and T(B) the time of an iteration (time_line.h),
//
//   time to go = x(B) S / B * T(B)
//
// and the rule takes the B with the least. On a constant schedule x is proportional to B / P(B), so
// that this is the most progress per second, P(B) / T(B). S divides out.
#include <algorithm>
#include <array>
#include <cmath>

#include "dynamix/policies/rules.h"
#include "dynamix/policies/split.h"

namespace dynamix {
namespace {

// The target is never taken to be nearer than this, in planned samples: at the end of the schedule
// nothing is left of it.
constexpr double kLeastHorizon = 0.02;

// Samples seen over samples planned; missing when nobody reports it.
double MeanProgress(const Round& round) {
  double sum = 0;
  int count = 0;
  for (const RoundEntry& entry : round.entries) {
    if (!entry.active || !entry.report) continue;
    const double progress = entry.report->training.progress;
    if (IsMissing(progress)) continue;
    sum += std::clamp(progress, 0.0, 1.0);
    ++count;
  }
  return count > 0 ? sum / count : kMissing;
}

// The integral of a schedule's factor from a point on, and its inverse. The schedule keeps its last
// factor after its end.
class ScheduleAhead {
 public:
  ScheduleAhead(Schedule schedule, double start)
      : cell_((1 - start) / kCells), last_(ScheduleFactor(schedule, 1)) {
    sums_[0] = 0;
    for (int i = 0; i < kCells; ++i)
      sums_[i + 1] = sums_[i] + cell_ * ScheduleFactor(schedule, start + (i + 0.5) * cell_);
  }

  double Sum(double span) const {
    if (span >= kCells * cell_) return sums_[kCells] + last_ * (span - kCells * cell_);
    const double at = span / cell_;
    const int i = std::min(static_cast<int>(at), kCells - 1);
    return sums_[i] + (at - i) * (sums_[i + 1] - sums_[i]);
  }
  // The span whose integral is `sum`.
  double Span(double sum) const {
    if (sum >= sums_[kCells]) return kCells * cell_ + (sum - sums_[kCells]) / last_;
    const int i =
        static_cast<int>(std::upper_bound(sums_.begin(), sums_.end(), sum) - sums_.begin()) - 1;
    return (i + (sum - sums_[i]) / (sums_[i + 1] - sums_[i])) * cell_;
  }

 private:
  static constexpr int kCells = 100;
  double cell_, last_;
  std::array<double, kCells + 1> sums_;
};

}  // namespace

Decisions CompositePolicy::Decide(const Round& round, const States& states, Rng&) {
  noise_.Add(round);
  time_.Add(round);
  const double noise = noise_.value(), base = BaseBatch(round);
  if (IsMissing(noise) || !time_.known() || !(base > 0))
    return SplitOutsideDeadBand(round, base, states.shares, options_.dead_band);

  const double seen = MeanProgress(round);
  // Without a progress nobody knows where the schedule stands.
  const Schedule schedule = IsMissing(seen) ? Schedule::kConstant : round.schedule;
  const double start = IsMissing(seen) ? 0 : seen;
  const double noise_part = options_.noise * noise / (noise + base);
  const double curvature_part = round.rule == LearningRateRule::kAdaScale
                                    ? 0
                                    : options_.curvature * ScheduleFactor(schedule, start);
  const auto step = [&](double batch) {
    const double f = LearningRateFactor(round.rule, batch, base, noise);
    return f * (1 - curvature_part * f - noise_part * f * base / batch);
  };
  const ScheduleAhead ahead(schedule, start);
  const double distance =
      step(base) / base * ahead.Sum(std::max(kLeastHorizon, options_.horizon * (1 - start)));
  const TimeCurve curve = time_.Curve(round);
  if (global_batch_ == 0) global_batch_ = base;
  global_batch_ =
      BestBatch(BoundsOf(round), global_batch_, options_.step, options_.gain, [&](double batch) {
        const double worth = step(batch);
        if (worth <= 0) return 0.0;
        return batch / (ahead.Span(distance * batch / worth) * curve.IterationMs(batch));
      });
  return SplitOutsideDeadBand(round, global_batch_, time_.Split(round, global_batch_),
                              options_.dead_band);
}

}  // namespace dynamix
