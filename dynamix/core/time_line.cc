// The fit. Each worker's line goes through its mean window (b, t) with the elasticity
//
//   e = d log t / d log b = cost b / (overhead + cost b)
//
// which is 1 without overhead. It is the same for all workers: one worker's windows are few and
// noisy, and balanced workers with equal overheads have the same one. With x = b / mean b - 1 and
// y = t / mean t - 1 of a worker's recent windows,
//
//   e = (mean over workers of cov(x, y) + ridge e_known) / (mean over workers of var(x) + ridge)
//
// and e_known the elasticity of the lines before at the new mean batches. While batches hardly vary
// the data do not tell overhead from cost; the ridge then keeps what was known, or a held batch
// would forget it.
#include "dynamix/core/time_line.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {
namespace {

constexpr double kLeastElasticity = 0.05;
constexpr double kSameBatch = 0.2;  // of the logarithm

// Of the numbers among what is added; missing without any.
struct Mean {
  double sum = 0;
  int count = 0;
  void Add(double value) {
    if (IsMissing(value)) return;
    sum += value;
    ++count;
  }
  double value() const { return sum / count; }
};

bool Measured(const RoundEntry& entry) {
  return entry.active && entry.report && entry.report->local_batch > 0 &&
         std::isfinite(entry.report->compute_ms) && entry.report->compute_ms > 0;
}

}  // namespace

// All workers finish at time t with b_i(t) = (t - overhead_i) / cost_i inside their bounds, so
// B(t) = sum_i b_i(t) is a line that bends down wherever a worker meets its highest batch. Before
// the time the slowest worker needs for its lowest batch, nothing is gained.
TimeCurve::TimeCurve(const std::vector<ComputeLine>& lines, const std::vector<BatchBounds>& bounds,
                     double exchange_ms)
    : exchange_ms_(exchange_ms) {
  DYNAMIX_CHECK(lines.size() == bounds.size(), "one line per worker");
  double ms = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) ms = std::max(ms, lines[i].Ms(bounds[i].lowest()));
  struct Bend {
    double ms, rate;  // a worker that adds `rate` samples per ms stops at `ms`
  };
  std::vector<Bend> bends;
  double batch = 0, rate = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double wanted = lines[i].BatchIn(ms);
    batch += std::clamp<double>(wanted, bounds[i].lowest(), bounds[i].highest());
    if (wanted >= bounds[i].highest()) continue;
    bends.push_back({lines[i].Ms(bounds[i].highest()), 1 / lines[i].cost_ms});
    rate += bends.back().rate;
  }
  std::sort(bends.begin(), bends.end(), [](const Bend& a, const Bend& b) { return a.ms < b.ms; });
  knots_.push_back({batch, ms});
  for (const Bend& bend : bends) {
    batch += rate * (bend.ms - ms);
    ms = bend.ms;
    rate -= bend.rate;
    knots_.push_back({batch, ms});
  }
}

double TimeCurve::ComputeMs(double global_batch) const {
  const auto after =
      std::lower_bound(knots_.begin(), knots_.end(), global_batch,
                       [](const Knot& knot, double batch) { return knot.batch < batch; });
  if (after == knots_.begin()) return after->ms;
  if (after == knots_.end()) return knots_.back().ms;
  const Knot &a = *(after - 1), &b = *after;
  return a.ms + (b.ms - a.ms) * (global_batch - a.batch) / (b.batch - a.batch);
}

void TimeLine::AddWindow(double batch, double compute_ms, Windows& windows) const {
  // Another time at the same batch is another device. At another batch it is news about the line.
  if (windows.weight > 0 && known() &&
      std::abs(std::log(batch / windows.mean_batch())) < kSameBatch &&
      std::abs(std::log(compute_ms / LineOf(windows).Ms(batch))) > std::log(options_.jump))
    windows = {};
  windows.weight = options_.memory * windows.weight + 1;
  windows.b = options_.memory * windows.b + batch;
  windows.t = options_.memory * windows.t + compute_ms;
  windows.bb = options_.memory * windows.bb + batch * batch;
  windows.bt = options_.memory * windows.bt + batch * compute_ms;
}

ComputeLine TimeLine::LineOf(const Windows& windows) const {
  return {(1 - elasticity_) * windows.mean_ms(),
          elasticity_ * windows.mean_ms() / windows.mean_batch()};
}

void TimeLine::Add(const Round& round) {
  workers_.resize(std::max(workers_.size(), round.entries.size()));
  Mean covariance, variance, known_elasticity, exchange;
  for (std::size_t i = 0; i < round.entries.size(); ++i) {
    if (!Measured(round.entries[i])) continue;
    const Report& report = *round.entries[i].report;
    Windows& windows = workers_[i];
    const double last_batch = windows.weight > 0 ? windows.mean_batch() : kMissing;
    AddWindow(report.local_batch, report.compute_ms, windows);
    const double b = windows.mean_batch(), t = windows.mean_ms();
    covariance.Add(windows.bt / windows.weight / (b * t) - 1);
    variance.Add(windows.bb / windows.weight / (b * b) - 1);
    const double grown = elasticity_ * b / last_batch;
    known_elasticity.Add(grown / (1 - elasticity_ + grown));
    if (report.communication_ms >= 0) exchange.Add(report.communication_ms);
  }
  if (covariance.count > 0) {
    const double known =
        known_elasticity.count > 0 ? known_elasticity.value() : 1 - options_.overhead_share;
    elasticity_ = std::clamp((covariance.value() + options_.ridge * known) /
                                 (std::max(0.0, variance.value()) + options_.ridge),
                             kLeastElasticity, 1.0);
  }
  exchange_ms_ = Smooth(exchange_ms_, exchange.value(), options_.exchange_weight);
}

std::vector<ComputeLine> TimeLine::Lines(const Round& round) const {
  DYNAMIX_CHECK(known(), "somebody was measured");
  Mean rate, overhead_ms;
  for (const Windows& windows : workers_) {
    if (windows.weight == 0) continue;
    const ComputeLine line = LineOf(windows);
    rate.Add(1 / line.cost_ms);
    overhead_ms.Add(line.overhead_ms);
  }
  std::vector<ComputeLine> lines(round.entries.size(), {overhead_ms.value(), 1 / rate.value()});
  for (std::size_t i = 0; i < std::min(lines.size(), workers_.size()); ++i)
    if (workers_[i].weight > 0) lines[i] = LineOf(workers_[i]);
  return lines;
}

TimeCurve TimeLine::Curve(const Round& round) const {
  const std::vector<ComputeLine> all = Lines(round);
  std::vector<ComputeLine> lines;
  std::vector<BatchBounds> bounds;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!round.entries[i].active) continue;
    lines.push_back(all[i]);
    bounds.push_back(round.entries[i].bounds);
  }
  return TimeCurve(lines, bounds, IsMissing(exchange_ms_) ? 0 : exchange_ms_);
}

double TimeLine::IterationMs(const Round& round) const {
  const std::vector<ComputeLine> lines = Lines(round);
  double slowest = 0;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (round.entries[i].active) slowest = std::max(slowest, lines[i].Ms(round.entries[i].batch));
  return slowest + (IsMissing(exchange_ms_) ? 0 : exchange_ms_);
}

std::vector<double> TimeLine::Split(const Round& round, double global_batch) const {
  const std::vector<ComputeLine> lines = Lines(round);
  const double ms = Curve(round).ComputeMs(global_batch);
  std::vector<double> batches(lines.size(), 0);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const RoundEntry& entry = round.entries[i];
    if (entry.active)
      batches[i] =
          std::clamp<double>(lines[i].BatchIn(ms), entry.bounds.lowest(), entry.bounds.highest());
  }
  return batches;
}

}  // namespace dynamix
