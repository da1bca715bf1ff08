// One step. With rate eta, gradient G, curvature h and noise scale phi, a step at global batch B
// lowers the loss, to second order, by (McCandlish et al. 2018, arXiv 1812.06162, section 2.2)
//
//   eta |G|^2 (1 - eta h / 2 - (eta h / 2) phi / B)
//
// The rate is eta_0 sigma f: the base rate, the schedule's factor, and the rule's factor f(B), which
// is 1 at the base batch B_0. In units of eta_0 sigma |G|^2, a step is worth
//
//   P(B) = f (1 - curvature - noise)
//   curvature = k_c f                       0 with AdaScale, whose f is chosen so that the rate is
//                                           safe for the noise at B
//   noise     = k_n w u f B_0 / B
//   w         = phi / (phi + B_0)
//   u         = n / (n + n_0)               n iterations so far
//
// Adam and its kin divide a step by the root of the second moment, G^2 and the noise's phi G^2 / B
// together: noise takes from the direction, and what a step of that length costs is the same at
// every batch,
//
//   P(B) = f (a - k_a f),   a = sqrt((1 + phi / B_0) / (1 + phi / B))
//
// Nobody measures h. What is known is that the user chose rate and schedule for the base batch, so
// curvature takes the part k_c of a step there at every point of the schedule. (With k_c sigma in its
// place, a warm-up or a step down of the rate is read as leave to grow the batch, and with it the
// rate, until the schedule is undone: a job with AdamW went to 11 times its batch that way.) The
// noise term does not follow from the measured phi either: phi grows with training until the term is
// near 1 at whatever batch the job runs (the noise floor), so it would ask for more and more samples.
// Noise takes the part k_n at the base batch, and elsewhere the part grows with f B_0 / B, the job's
// temperature (rate over batch) relative to its base. While phi is far below B_0 there is no noise to
// speak of, hence w. Noise also has to gather: a direction of curvature h is at its noise floor after
// some 1 / (eta h) steps, so at first steps move the weights, and later more and more of what they do
// is to keep the noise down, hence u. With the same k_n from the first iteration to the last, either
// short jobs take batches that are too large or long jobs too small ones.
//
// The schedule. Its clock (learning_rate.h) counts A(B) samples for a step, B by samples and f B_0 by
// steps. At the part s of the schedule, x S more of its S samples at batch B are x S / A steps and
// bring the job forward by
//
//   D(B, x) = S P(B) / A(B) * integral of sigma from s to s + x
//
// By samples, a large batch whose rate does not grow with it uses up the schedule before the target is
// reached; a linear rule loses nothing. By steps, only what curvature and noise take is lost. How far away the target is, is not known. It is taken as far as the
// base batch gets in the part `horizon` of what is left of the schedule:
//
//   D* = D(B_0, horizon (1 - s))
//
// With x(B) the solution of D(B, x) = D*, and T(B) the time of an iteration (time_line.h),
//
//   time to go = x(B) S / A(B) * T(B)
//
// On a constant schedule x is proportional to A(B) / P(B), so that the least time to go is the most
// progress per second, P(B) / T(B). S divides out.
#include "dynamix/core/time_to_go.h"

#include <algorithm>
#include <cmath>

namespace dynamix {
namespace {

// The target is never taken to be nearer than this, in planned samples: at the end of the schedule
// nothing is left of it.
constexpr double kLeastHorizon = 0.02;

// The part of the schedule that is over; missing when nobody reports it.
double MeanProgress(const Round& round) {
  return MeanOver(round, [](const Report& r) {
    return IsMissing(r.training.progress) ? kMissing : std::clamp(r.training.progress, 0.0, 1.0);
  });
}

// Without a progress nobody knows where the schedule stands.
Schedule KnownSchedule(const Round& round) {
  return IsMissing(MeanProgress(round)) ? Schedule::kConstant : round.schedule;
}

double KnownProgress(const Round& round) {
  const double progress = MeanProgress(round);
  return IsMissing(progress) ? 0 : progress;
}

// u: how far noise has gathered.
double Gathered(const Round& round, double burn_in) {
  double iterations = 0;
  for (const RoundEntry& entry : round.entries)
    if (entry.Reported())
      iterations = std::max(iterations, (entry.report->window + 1.0) * entry.report->iterations);
  return iterations / (iterations + burn_in);
}

}  // namespace

TimeToGo::ScheduleAhead::ScheduleAhead(Schedule schedule, double start)
    : cell_((1 - start) / kCells), last_(ScheduleFactor(schedule, 1)) {
  sums_[0] = 0;
  for (int i = 0; i < kCells; ++i)
    sums_[i + 1] = sums_[i] + cell_ * ScheduleFactor(schedule, start + (i + 0.5) * cell_);
}

double TimeToGo::ScheduleAhead::Sum(double span) const {
  if (span >= kCells * cell_) return sums_[kCells] + last_ * (span - kCells * cell_);
  const double at = span / cell_;
  const int i = std::min(static_cast<int>(at), kCells - 1);
  return sums_[i] + (at - i) * (sums_[i + 1] - sums_[i]);
}

double TimeToGo::ScheduleAhead::Span(double sum) const {
  if (sum >= sums_[kCells]) return kCells * cell_ + (sum - sums_[kCells]) / last_;
  const int i =
      static_cast<int>(std::upper_bound(sums_.begin(), sums_.end(), sum) - sums_.begin()) - 1;
  return (i + (sum - sums_[i]) / (sums_[i + 1] - sums_[i])) * cell_;
}

TimeToGo::TimeToGo(const Round& round, double noise, const TimeToGoOptions& options)
    : rule_(round.rule),
      clock_(round.clock),
      adaptive_(round.adaptive),
      base_(BaseBatch(round)),
      noise_(noise),
      noise_part_(options.noise * Gathered(round, options.burn_in) * noise / (noise + base_)),
      curvature_part_(round.adaptive                              ? options.adaptive
                      : round.rule == LearningRateRule::kAdaScale ? 0
                                                                  : options.curvature),
      ahead_(KnownSchedule(round), KnownProgress(round)),
      distance_(Worth(base_) / base_ *
                ahead_.Sum(std::max(kLeastHorizon, options.horizon * (1 - KnownProgress(round))))) {
}

double TimeToGo::Factor(double batch) const {
  return LearningRateFactor(rule_, batch, base_, noise_);
}

double TimeToGo::Worth(double batch) const {
  const double f = Factor(batch);
  if (adaptive_)
    return f * (std::sqrt((1 + noise_ / base_) / (1 + noise_ / batch)) - curvature_part_ * f);
  return f * (1 - curvature_part_ * f - noise_part_ * f * base_ / batch);
}

double TimeToGo::Advance(double batch) const {
  return ScheduleAdvance(clock_, batch, base_, Factor(batch));
}

double TimeToGo::Speed(double batch, double iteration_ms) const {
  const double worth = Worth(batch);
  if (worth <= 0) return 0;
  const double advance = Advance(batch);
  return advance / (ahead_.Span(distance_ * advance / worth) * iteration_ms);
}

}  // namespace dynamix
