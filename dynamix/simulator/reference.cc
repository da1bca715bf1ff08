#include "dynamix/simulator/reference.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {
namespace {

// Part of the improvement whose mean slope continues the curve.
constexpr double kTail = 0.25;
// A target asks for at most this part of it.
constexpr double kMostImprovement = 0.99;

}  // namespace

ReferenceCurve::ReferenceCurve(const std::vector<Point>& points) {
  DYNAMIX_CHECK(!points.empty(), "a curve has a first point");
  for (const Point& point : points) {
    if (points_.empty() || point.loss < points_.back().loss) points_.push_back(point);
  }
  run_seconds_ = points.back().seconds;
}

double ReferenceCurve::Inside(double loss) const {
  // The first point at or below `loss`.
  const auto after = std::lower_bound(points_.begin(), points_.end(), loss,
                                      [](const Point& p, double l) { return p.loss > l; });
  if (after == points_.begin()) return after->seconds;
  if (after == points_.end()) return points_.back().seconds;
  const Point &a = *(after - 1), &b = *after;
  return a.seconds + (b.seconds - a.seconds) * (a.loss - loss) / (a.loss - b.loss);
}

double ReferenceCurve::Tau(double loss) const {
  const double first = initial_loss(), last = final_loss();
  const double worst = points_.front().seconds - run_seconds_;
  if (!std::isfinite(loss)) return worst;
  const double tail = kTail * (first - last);
  if (tail <= 0) return 0;
  if (loss > first) {
    const double slope = (Inside(first - tail) - points_.front().seconds) / tail;
    return std::max(worst, points_.front().seconds - slope * (loss - first));
  }
  if (loss < last) {
    const double slope = (points_.back().seconds - Inside(last + tail)) / tail;
    return std::min(points_.back().seconds + run_seconds_,
                    points_.back().seconds + slope * (last - loss));
  }
  return Inside(loss);
}

double ReferenceCurve::TimeTo(double loss) const {
  const auto found = std::find_if(points_.begin(), points_.end(),
                                  [loss](const Point& p) { return p.loss <= loss; });
  return found == points_.end() ? run_seconds_ : found->seconds;
}

double ReferenceCurve::AccuracyAt(double loss) const {
  const auto found = std::find_if(points_.begin(), points_.end(),
                                  [loss](const Point& p) { return p.loss <= loss; });
  return found == points_.end() ? points_.back().accuracy : found->accuracy;
}

double ReferenceCurve::LossAtTime(double share) const {
  const double seconds = share * run_seconds_;
  const auto after = std::lower_bound(points_.begin(), points_.end(), seconds,
                                      [](const Point& p, double s) { return p.seconds < s; });
  if (after == points_.begin()) return after->loss;
  if (after == points_.end()) return points_.back().loss;
  const Point &a = *(after - 1), &b = *after;
  return a.loss + (b.loss - a.loss) * (seconds - a.seconds) / (b.seconds - a.seconds);
}

double ReferenceCurve::LossForTarget(double run_share) const {
  const double lowest = initial_loss() + kMostImprovement * (final_loss() - initial_loss());
  return std::max(LossAtTime(run_share), lowest);
}

const ReferenceCurve::Point* ReferenceCurve::FindAccuracy(double accuracy) const {
  const auto found = std::find_if(points_.begin(), points_.end(),
                                  [&](const Point& p) { return p.accuracy >= accuracy; });
  return found == points_.end() ? nullptr : &*found;
}

ReferenceCurve RunReference(const SimulatedCluster& cluster, double global_batch) {
  const auto run = cluster.Clone();
  if (global_batch <= 0) global_batch = run->base_batch();
  run->Reset();
  std::vector<ReferenceCurve::Point> points = {{0, run->initial_loss()}};
  const auto record = [&] {
    const Truth& truth = run->truth();
    points.push_back({truth.seconds, truth.held_out_loss, truth.held_out_accuracy});
  };
  record();
  while (run->truth().progress < 1) {
    run->Advance(run->BalancedSizes(global_batch));
    record();
  }
  return ReferenceCurve(points);
}

}  // namespace dynamix
