#include <algorithm>
#include <cmath>

#include "dynamix/policies/rules.h"
#include "dynamix/policies/split.h"

namespace dynamix {
namespace {

// Weight of the past in the fit: about five windows, so that a slowdown is forgotten when it ends.
constexpr double kMemory = 0.8;
// Weight of the newest window in smoothed values.
constexpr double kSmoothing = 0.3;
constexpr int kGridSteps = 16;

bool Measured(const RoundEntry& entry) {
  return entry.Reported() && entry.report->local_batch > 0 &&
         std::isfinite(entry.report->compute_ms) && entry.report->compute_ms > 0;
}

}  // namespace

void GoodputPolicy::Line::Add(double batch, double compute_ms) {
  // A worker whose speed jumped is another device: old points would bend the line.
  if (weight > 0) {
    const double expected = overhead() + cost() * batch;
    if (compute_ms > 1.5 * expected || compute_ms < expected / 1.5) *this = {};
  }
  weight = kMemory * weight + 1;
  b = kMemory * b + batch;
  t = kMemory * t + compute_ms;
  bb = kMemory * bb + batch * batch;
  bt = kMemory * bt + batch * compute_ms;
}

double GoodputPolicy::Line::cost() const {
  const double mean_b = b / weight, mean_t = t / weight;
  const double proportional = mean_t / mean_b;
  const double variance = bb / weight - mean_b * mean_b;
  const double covariance = bt / weight - mean_b * mean_t;
  // A ridge towards the proportional line (no overhead, Pollux's prior of perfect scaling) until
  // batches differ.
  const double ridge = 0.01 * mean_b * mean_b;
  const double slope = (covariance + ridge * proportional) / (variance + ridge);
  return std::clamp(slope, 0.1 * proportional, proportional);
}

double GoodputPolicy::Line::overhead() const {
  return std::max(0.0, t / weight - cost() * b / weight);
}

void GoodputPolicy::Learn(const Round& round) {
  lines_.resize(round.entries.size());
  double communication = 0;
  int count = 0;
  for (std::size_t i = 0; i < round.entries.size(); ++i) {
    const RoundEntry& entry = round.entries[i];
    if (!Measured(entry)) continue;
    lines_[i].Add(entry.report->local_batch, entry.report->compute_ms);
    if (IsMissing(entry.report->communication_ms) || entry.report->communication_ms < 0) continue;
    communication += entry.report->communication_ms;
    ++count;
  }
  if (count > 0) communication_ms_ = Smooth(communication_ms_, communication / count, kSmoothing);
  log_noise_ = Smooth(log_noise_, LogNoise(round), kSmoothing);
}

// b_i = (t - overhead_i) / cost_i at the common finishing time t that uses up the global batch.
std::vector<double> GoodputPolicy::Shares(const Round& round, double global_batch) const {
  double rate = 0, lost = 0;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!round.entries[i].active || lines_[i].weight == 0) continue;
    rate += 1 / lines_[i].cost();
    lost += lines_[i].overhead() / lines_[i].cost();
  }
  const double finish = rate > 0 ? (global_batch + lost) / rate : 0;
  std::vector<double> shares(lines_.size(), kMissing);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!round.entries[i].active || lines_[i].weight == 0) continue;
    shares[i] = std::max(1e-3, (finish - lines_[i].overhead()) / lines_[i].cost());
  }
  return shares;
}

double GoodputPolicy::Goodput(const Round& round, double global_batch, double noise) const {
  const std::vector<double> split =
      SplitGlobalBatch(round, global_batch, Shares(round, global_batch));
  double slowest = 0;
  for (std::size_t i = 0; i < split.size(); ++i) {
    if (!round.entries[i].active || lines_[i].weight == 0) continue;
    slowest = std::max(slowest, lines_[i].overhead() + lines_[i].cost() * split[i]);
  }
  const double iteration = slowest + (IsMissing(communication_ms_) ? 0 : communication_ms_);
  const double efficiency = (noise + start_batch_) / (noise + global_batch);
  return iteration > 0 ? global_batch / iteration * efficiency : 0;
}

Decisions GoodputPolicy::Decide(const Round& round, const States& states, Rng&) {
  if (start_batch_ == 0) start_batch_ = global_batch_ = round.GlobalBatch();
  Learn(round);
  if (IsMissing(log_noise_)) {
    return SplitOutsideDeadBand(round, global_batch_, states.shares, dead_band_);
  }

  const GlobalBounds bounds = BoundsOf(round);
  const double noise = std::exp2(log_noise_);
  const double current = std::clamp(global_batch_, bounds.lowest, bounds.highest);
  double best = current, best_goodput = Goodput(round, current, noise) * (1 + smallest_gain_);
  for (int step = -kGridSteps; step <= kGridSteps; ++step) {
    const double factor = std::pow(largest_step_, static_cast<double>(step) / kGridSteps);
    const double candidate = std::clamp(current * factor, bounds.lowest, bounds.highest);
    const double goodput = Goodput(round, candidate, noise);
    if (goodput > best_goodput) {
      best = candidate;
      best_goodput = goodput;
    }
  }
  global_batch_ = best;
  return SplitOutsideDeadBand(round, global_batch_, Shares(round, global_batch_), dead_band_);
}

}  // namespace dynamix
