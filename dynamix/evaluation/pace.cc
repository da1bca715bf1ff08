// With L_0 the loss at the start and L_1 the higher of the two lowest losses, t(L) the first time at
// which a run had loss L (straight lines between its points), and levels
//
//   L_k = L_0 - (L_0 - L_1) k / kLevels,    k = kFirst .. kLevels - 1
//
//   log pace = mean over k of log(t(L_k) / t_baseline(L_k))
//
// The first levels are left out, because a run passes them within its first windows, and so is L_1
// itself, which one of the two reached in its luckiest moment.
#include "dynamix/evaluation/pace.h"

#include <algorithm>
#include <cmath>

namespace dynamix {
namespace {

constexpr int kLevels = 20;
constexpr int kFirst = 8;

double Lowest(const std::vector<CurvePoint>& curve) {
  double lowest = curve.front().loss;
  for (const CurvePoint& point : curve) lowest = std::min(lowest, point.loss);
  return lowest;
}

// When the curve first had `loss`, which it has and did not start with.
double FirstTime(const std::vector<CurvePoint>& curve, double loss) {
  const auto at = std::find_if(curve.begin(), curve.end(),
                               [loss](const CurvePoint& point) { return point.loss <= loss; });
  if (at == curve.begin() || at == curve.end()) return 0;
  const CurvePoint& before = *(at - 1);
  const double part = (before.loss - loss) / (before.loss - at->loss);
  return before.seconds + part * (at->seconds - before.seconds);
}

}  // namespace

std::optional<double> LogPace(const std::vector<CurvePoint>& curve,
                              const std::vector<CurvePoint>& baseline) {
  if (curve.empty() || baseline.empty()) return std::nullopt;
  const double start = std::min(curve.front().loss, baseline.front().loss);
  const double end = std::max(Lowest(curve), Lowest(baseline));
  if (!(end < start)) return std::nullopt;
  double sum = 0;
  for (int k = kFirst; k < kLevels; ++k) {
    const double loss = start - (start - end) * k / kLevels;
    const double own = FirstTime(curve, loss), other = FirstTime(baseline, loss);
    if (!(own > 0) || !(other > 0)) return std::nullopt;
    sum += std::log(own / other);
  }
  return sum / (kLevels - kFirst);
}

}  // namespace dynamix
