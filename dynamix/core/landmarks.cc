#include "dynamix/core/landmarks.h"

#include "dynamix/core/batch_search.h"

namespace dynamix {
namespace {

constexpr double kGain = 0.02;  // that another batch must promise
constexpr double kAnyStep = 1e12;

// The best legal batch; `last` is where the search before ended, missing when this is the first.
template <typename Value>
double Search(const Round& round, double last, Value value) {
  const double present = IsMissing(last) ? round.GlobalBatch() : last;
  return BestBatch(BoundsOf(round), present, kAnyStep, IsMissing(last) ? 0 : kGain, value);
}

}  // namespace

Landmarks LandmarkFinder::Find(const Round& round) {
  noise_.Add(round);
  time_.Add(round);
  Landmarks found{.base = BaseBatch(round), .soonest = BaseBatch(round)};
  const double batch = round.GlobalBatch();
  if (!time_.known() || !(batch > 0) || !(found.base > 0)) return found;
  const TimeCurve curve = time_.Curve(round);
  const double now_ms = curve.IterationMs(batch);
  found.time_at_twice = curve.IterationMs(2 * batch) / now_ms;
  found.time_at_half = curve.IterationMs(batch / 2) / now_ms;
  const double noise = noise_.value();
  if (IsMissing(noise)) return found;
  goodput_ =
      Search(round, goodput_, [&](double b) { return b / curve.IterationMs(b) / (noise + b); });
  const TimeToGo to_go(round, noise);
  soonest_ =
      Search(round, soonest_, [&](double b) { return to_go.Speed(b, curve.IterationMs(b)); });
  found.goodput = goodput_;
  found.soonest = soonest_;
  return found;
}

}  // namespace dynamix
