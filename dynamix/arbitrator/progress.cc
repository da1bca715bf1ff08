#include "dynamix/arbitrator/progress.h"

#include <algorithm>
#include <cmath>

namespace dynamix {
namespace {

// Weight of the newest window: a training loss is noisy.
constexpr double kLossWeight = 0.3;
constexpr double kRateWeight = 0.1;
// A window's usual movement is learned slowly, so that a loss that explodes does not excuse itself.
constexpr double kMovementWeight = 0.05;
// Usual movements that count as much as the loss itself.
constexpr double kMovements = 6;
// Windows of one unit of time when the length of the run is unknown.
constexpr double kWindowsPerUnit = 2;

}  // namespace

double MeanLoss(const Round& round) {
  return MeanOver(round, [](const Report& report) { return report.training.loss; });
}

void SmoothedLoss::Add(double fresh) {
  if (IsMissing(fresh)) return;
  if (!IsMissing(last_)) movement_ = Smooth(movement_, std::abs(fresh - last_), kMovementWeight);
  last_ = fresh;
  value_ = Smooth(value_, fresh, kLossWeight);
}

double SmoothedLoss::RiseAbove(double reference) const {
  const double rise = value_ - reference;
  const double movement = IsMissing(movement_) ? 0 : movement_;
  return rise == 0 ? 0 : rise / std::max(std::abs(reference), kMovements * movement);
}

RecordedCurve::RecordedCurve(const std::vector<std::pair<double, double>>& points) {
  double smoothed = kMissing;
  for (const auto& [seconds, loss] : points) {
    if (IsMissing(seconds) || IsMissing(loss)) continue;
    if (!points_.empty() && seconds <= points_.back().first) continue;
    smoothed = Smooth(smoothed, loss, kLossWeight);
    points_.emplace_back(seconds,
                         points_.empty() ? smoothed : std::min(points_.back().second, smoothed));
  }
}

double RecordedCurve::Tau(double loss) const {
  if (points_.empty()) return 0;
  const auto after = std::find_if(points_.begin(), points_.end(),
                                  [&](const auto& point) { return point.second <= loss; });
  if (after == points_.end()) return points_.back().first;
  if (after == points_.begin()) return after->first;
  const auto before = after - 1;
  const double share = (before->second - loss) / (before->second - after->second);
  return before->first + share * (after->first - before->first);
}

double ProgressClock::Advance(const Round& round) {
  seconds_ += round.seconds;
  if (IsMissing(window_s_)) window_s_ = round.seconds;
  const double fresh = MeanLoss(round), before = loss_.value();
  if (IsMissing(fresh)) return kMissing;
  loss_.Add(fresh);
  if (IsMissing(before)) return kMissing;
  if (!curve_.empty()) return curve_.Tau(loss_.value()) - curve_.Tau(before);
  const double rate = -loss_.RiseAbove(before) / round.seconds;
  const double recent = rate_;
  rate_ = Smooth(rate_, rate, kRateWeight);
  if (IsMissing(recent)) return kMissing;
  // Near a plateau any noise is many times the recent rate: compare with its size, not below 1 % an
  // hour.
  return round.seconds * (1 + (rate - recent) / std::max(std::abs(recent), 0.01 / 3600));
}

double ProgressClock::TimeScale() const {
  if (!curve_.empty()) return std::max(1e-6, curve_.seconds() / units_per_run_);
  return IsMissing(window_s_) ? 1 : std::max(1e-6, window_s_ * kWindowsPerUnit);
}

}  // namespace dynamix
