// Compute of worker i with local batch b, in micro batches that fit into memory. The constants are
// keys of [[node]] and [cost] (docs/scenarios.md); factor(b) is the saturation curve of workload.h.
//
//   t_i(b) = overhead_i + slowdown_i(t) / speed_i * b * sample_ms * factor(b)
//
// One iteration takes t_i(b) * exp(jitter z - jitter^2 / 2), z standard normal (from a table of
// 1,024 quantiles), so its mean is t_i(b). Every iteration is drawn and lasts as long as its
// slowest worker, so a window's mean estimates E[max], not max E.
//
// One exchange of M bytes among N workers:
//
//   ring               2 (N - 1) / N * M / min_i rate_i
//                      + 2 (N - 1) * max_i latency_i                    Patarasuk and Yuan 2009
//   parameter server   2 M max(1 / min_i rate_i, N / server rate)
//                      + 2 max_i latency_i
//   rate_i             min(bandwidth_i,
//                          MSS / RTT_i * sqrt(3 / 2) / sqrt(loss_i))    Mathis et al. 1997
//   hidden             min(overlap * exchange, backward)                behind the backward pass
//   backward           2 / 3 of the slowest compute
//
// Slowdowns, bandwidth drops and losses take effect in the iteration in which they begin; workers
// leave and join between windows. An absence that would leave nobody is put off. The time lost when
// a batch first exceeds its worker's memory is the caller's to charge (SimulatedCluster).
#include "dynamix/simulator/cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/simd.h"

namespace dynamix {
namespace {

constexpr double kSegmentBytes = 1460;
constexpr double kBackwardShare = 2.0 / 3.0;
constexpr int kChunk = 32;  // iterations drawn at once
constexpr int kQuantileBits = 10;
constexpr int kQuantiles = 1 << kQuantileBits;

// z with P(Z < z) = p, by bisection on erfc; only used to fill the table.
double NormalQuantile(double p) {
  double low = -9, high = 9;
  for (int step = 0; step < 60; ++step) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

// Quantiles at the middles of equal slices, scaled to variance 1.
const std::array<float, kQuantiles>& NormalTable() {
  static const std::array<float, kQuantiles> table = [] {
    std::array<double, kQuantiles> exact;
    double squares = 0;
    for (int i = 0; i < kQuantiles; ++i) {
      exact[i] = NormalQuantile((i + 0.5) / kQuantiles);
      squares += exact[i] * exact[i];
    }
    std::array<float, kQuantiles> scaled;
    const double scale = 1 / std::sqrt(squares / kQuantiles);
    for (int i = 0; i < kQuantiles; ++i) scaled[i] = static_cast<float>(exact[i] * scale);
    return scaled;
  }();
  return table;
}

struct alignas(64) Chunk {
  std::array<float, kChunk> values{};
};

void DrawNormals(Rng& rng, int count, Chunk& normals) {
  const auto& table = NormalTable();
  constexpr int kPerWord = 64 / kQuantileBits;
  for (int i = 0; i < count; i += kPerWord) {
    std::uint64_t bits = rng.Next();
    for (int j = i; j < std::min(i + kPerWord, count); ++j, bits >>= kQuantileBits)
      normals.values[j] = table[bits & (kQuantiles - 1)];
  }
}

// normals <- mean * exp(jitter * normals - jitter^2 / 2); exp(x) = (series of x / 8)^8, exact to
// float for |x| < 4.
DYNAMIX_SIMD void ToTimes(Chunk& normals, float mean, float jitter) {
  const float shift = -0.5f * jitter * jitter;
  for (int i = 0; i < kChunk; ++i) {
    const float x = (jitter * normals.values[i] + shift) * 0.125f;
    float e = 1 + x * (1 + x * (0.5f + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120)))));
    e *= e;
    e *= e;
    e *= e;
    normals.values[i] = mean * e;
  }
}

double SumAndKeepSlowest(const Chunk& times, int count, float* slowest) {
  std::array<float, 4> sums{};
  for (int i = 0; i < count; ++i) {
    sums[i & 3] += times.values[i];
    slowest[i] = std::max(slowest[i], times.values[i]);
  }
  return double{sums[0] + sums[1]} + double{sums[2] + sums[3]};
}

double LinkRate(const Node& node, double bandwidth_factor, double added_loss) {
  const double bandwidth = node.bandwidth_mbps * bandwidth_factor;
  const double loss = std::min(0.9, node.loss + added_loss);
  if (loss <= 0) return bandwidth;
  const double rtt_us = 2000 * node.latency_ms;
  return std::min(bandwidth, kSegmentBytes * 8 / rtt_us * std::sqrt(1.5 / loss));
}

}  // namespace

Cluster::Cluster(const Scenario& scenario, const CostOptions& cost, int workers)
    : cost_(cost),
      communication_(scenario.communication),
      tier_(scenario.network_tier),
      server_mbps_(scenario.server_mbps),
      nodes_(ResolveNodes(scenario, workers)),
      limits_(nodes_.size()) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const double free = nodes_[i].memory_gb * 1e9 - cost_.memory_fixed_bytes;
    const double fits =
        cost_.memory_per_sample_bytes > 0 ? free / cost_.memory_per_sample_bytes : double{1 << 24};
    limits_[i].memory_batch = static_cast<int>(std::clamp(fits, 1.0, double{1 << 24}));
  }
  Restart(Rng(0));
}

void Cluster::SetEvents(std::vector<TimedEvent> events) {
  events_ = std::move(events);
  edges_.clear();
  for (std::size_t e = 0; e < events_.size(); ++e) {
    DYNAMIX_CHECK(events_[e].worker >= 0 && events_[e].worker < workers(), "a known worker");
    edges_.push_back({events_[e].begin_s, e, true});
    if (std::isfinite(events_[e].end_s)) edges_.push_back({events_[e].end_s, e, false});
  }
  std::stable_sort(edges_.begin(), edges_.end(),
                   [](const Edge& a, const Edge& b) { return a.seconds < b.seconds; });
  Restart(rng_);
}

void Cluster::Restart(const Rng& rng) {
  rng_ = rng;
  measure_rng_ = rng.Fork(1);
  state_.assign(nodes_.size(), {});
  // A machine's slowdowns look the same in every window, so their look is drawn once.
  for (WorkerLimits& limits : limits_) limits.quota_share = rng_.Uniform();
  next_edge_ = 0;
  timing_ = {};
  timing_.compute_ms.assign(nodes_.size(), 0);
  expected_ms_.assign(nodes_.size(), 0);
  batches_.assign(nodes_.size(), 0);
  // Should nobody be there at the start, everybody is.
  present_count_ = workers();
  membership_changed_ = true;
  BeginWindow(0);
}

void Cluster::ApplyEdge(const Edge& edge) {
  const TimedEvent& event = events_[edge.event];
  WorkerState& state = state_[event.worker];
  const int change = edge.begins ? 1 : -1;
  const auto scale = [&](double& factor, int& under_way) {
    under_way += change;
    factor = under_way == 0 ? 1 : edge.begins ? factor * event.factor : factor / event.factor;
  };
  switch (event.kind) {
    case EventKind::kSlowdown:
      return scale(state.slowdown, state.slowdowns);
    case EventKind::kBandwidth:
      return scale(state.bandwidth_factor, state.bandwidths);
    case EventKind::kLoss:
      state.losses += change;
      state.added_loss = state.losses == 0 ? 0 : state.added_loss + change * event.factor;
      return;
    case EventKind::kLeave:
    case EventKind::kJoin:
      state.absences += change;
      membership_changed_ = true;
      return;
  }
}

bool Cluster::ApplyEdgesUntil(double seconds) {
  bool changed = false;
  for (; next_edge_ < edges_.size() && edges_[next_edge_].seconds <= seconds; ++next_edge_) {
    ApplyEdge(edges_[next_edge_]);
    changed = true;
  }
  return changed;
}

void Cluster::BeginWindow(double seconds) {
  now_s_ = seconds;
  const bool changed = ApplyEdgesUntil(seconds);
  if (!changed && !membership_changed_) return;
  int wanted = 0;
  for (const WorkerState& state : state_) wanted += state.absences == 0 ? 1 : 0;
  if (wanted > 0) {
    for (WorkerState& state : state_) state.present = state.absences == 0;
    present_count_ = wanted;
  }
  membership_changed_ = false;
  UpdateNetwork();
}

void Cluster::UpdateNetwork() {
  slowest_rate_mbps_ = std::numeric_limits<double>::infinity();
  double latency_ms = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    WorkerState& state = state_[i];
    if (!state.present) continue;
    state.rate_mbps = LinkRate(nodes_[i], state.bandwidth_factor, state.added_loss);
    slowest_rate_mbps_ = std::min(slowest_rate_mbps_, state.rate_mbps);
    latency_ms = std::max(latency_ms, nodes_[i].latency_ms);
  }
  const double n = present_count_;
  const double kilobits = cost_.gradient_bytes * 8e-3;  // over Mbit/s: milliseconds
  if (present_count_ < 2) {
    exchange_ms_ = 0;
  } else if (communication_ == Communication::kRing) {
    exchange_ms_ = 2 * (n - 1) / n * kilobits / slowest_rate_mbps_ + 2 * (n - 1) * latency_ms;
  } else {
    exchange_ms_ =
        2 * kilobits * std::max(1 / slowest_rate_mbps_, n / server_mbps_) + 2 * latency_ms;
  }
}

double Cluster::DeviceMs(double batch) const {
  return batch > 0 ? cost_.sample_ms * batch * cost_.saturation.Factor(batch) : 0;
}

double Cluster::ComputeMs(int worker, double batch) const {
  const Node& node = nodes_[worker];
  const double fits = limits_[worker].memory_batch;
  double device_ms = 0;
  if (batch <= fits) {
    device_ms = DeviceMs(batch);
  } else {
    const double full = std::floor(batch / fits);
    device_ms = full * DeviceMs(fits) + DeviceMs(batch - full * fits);
  }
  return node.overhead_ms + state_[worker].slowdown / node.speed * device_ms;
}

double Cluster::CommunicationMs() const { return exchange_ms_; }

double Cluster::ExposedMs(double slowest_compute_ms) const {
  return exchange_ms_ - std::min(cost_.overlap * exchange_ms_, kBackwardShare * slowest_compute_ms);
}

std::vector<double> Cluster::Balance(double global_batch,
                                     const std::vector<BatchBounds>& bounds) const {
  std::vector<int> present;
  std::vector<BatchBounds> present_bounds;
  for (int i = 0; i < workers(); ++i) {
    if (!state_[i].present) continue;
    present.push_back(i);
    present_bounds.push_back(bounds[i]);
  }
  // Batches in proportion to samples per millisecond, until that no longer changes them.
  std::vector<double> parts(present.size(), global_batch / present.size());
  std::vector<double> speeds(present.size());
  for (int step = 0; step < 8; ++step) {
    for (std::size_t j = 0; j < present.size(); ++j)
      speeds[j] = parts[j] / ComputeMs(present[j], parts[j]);
    const std::vector<double> next = Distribute(global_batch, speeds, present_bounds);
    double change = 0;
    for (std::size_t j = 0; j < present.size(); ++j)
      change = std::max(change, std::abs(next[j] - parts[j]) / parts[j]);
    parts = next;
    if (change < 1e-3) break;
  }
  std::vector<double> batches(workers(), 0);
  for (std::size_t j = 0; j < present.size(); ++j) batches[present[j]] = parts[j];
  return batches;
}

int Cluster::IterationsBeforeNextEdge(int left) const {
  if (next_edge_ >= edges_.size()) return left;
  const double slowest = *std::max_element(expected_ms_.begin(), expected_ms_.end());
  const double iteration_s = 1e-3 * (slowest + ExposedMs(slowest));
  const double count = std::ceil((edges_[next_edge_].seconds - now_s_) / iteration_s);
  return count < left ? std::max(1, static_cast<int>(count)) : left;
}

const WindowTiming& Cluster::RunWindow(const std::vector<int>& batches, int iterations) {
  DYNAMIX_CHECK(static_cast<int>(batches.size()) == workers(), "one batch per worker");
  const double begin_s = now_s_;
  batches_ = batches;
  iterations_ = iterations;
  timing_.slowest_ms = timing_.communication_ms = 0;
  std::fill(timing_.compute_ms.begin(), timing_.compute_ms.end(), 0.0);
  for (int left = iterations; left > 0;) {
    if (ApplyEdgesUntil(now_s_)) UpdateNetwork();
    for (int i = 0; i < workers(); ++i)
      expected_ms_[i] = state_[i].present ? ComputeMs(i, batches[i]) : 0;
    const int count = std::min(IterationsBeforeNextEdge(left), kChunk);
    RunSegment(batches, count);
    left -= count;
  }
  for (double& compute_ms : timing_.compute_ms) compute_ms /= iterations;
  timing_.slowest_ms /= iterations;
  timing_.communication_ms /= iterations;
  timing_.iteration_ms = timing_.slowest_ms + timing_.communication_ms;
  timing_.seconds = now_s_ - begin_s;
  lag_weight_ = 1 - std::exp(-timing_.seconds / kLagSeconds);
  return timing_;
}

void Cluster::RunSegment(const std::vector<int>& batches, int iterations) {
  std::array<float, kChunk> slowest{};
  Chunk times;
  for (int i = 0; i < workers(); ++i) {
    if (!state_[i].present) continue;
    DYNAMIX_CHECK(batches[i] > 0, "a present worker has samples");
    DrawNormals(rng_, iterations, times);
    ToTimes(times, static_cast<float>(expected_ms_[i]), static_cast<float>(nodes_[i].jitter));
    timing_.compute_ms[i] += SumAndKeepSlowest(times, iterations, slowest.data());
  }
  double slowest_sum = 0;
  for (int k = 0; k < iterations; ++k) slowest_sum += slowest[k];
  // Other traffic makes exchanges vary from window to window.
  const double network_factor = std::max(0.5, 1 + 0.03 * rng_.Normal());
  const double exposed = network_factor * iterations * ExposedMs(slowest_sum / iterations);
  timing_.slowest_ms += slowest_sum;
  timing_.communication_ms += exposed;
  now_s_ += 1e-3 * (slowest_sum + exposed);
}

}  // namespace dynamix
