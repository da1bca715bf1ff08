// What a worker measures of a window, with the error and the lag its instruments have. u: uniform
// noise of variance 1.
//
//   compute, wait    means of the drawn times: clocks are exact at this scale
//   bytes            counts of acknowledged bytes, 2 % framing
//   retransmission   loss + 1e-5 background + sampling error sqrt(loss (1 - loss) / segments) u
//   minimum RTT      2 latency * (1 + 0.01 |u|)
//   smoothed RTT     minimum RTT * (1.05 + 2 utilisation^4) * (1 + 0.1 u): queues form on the link
//                    that holds the others up
//   delivery rate    rate of the own link * (1 + 0.05 u)
//   CPU use          0.97 while computing (over the slowdown), 0.3 while communicating, 0.05 while
//                    waiting, 3 % noise
//   pressure         0.9 of the time a slowdown takes away, split between PSI pressure and quota
//   and throttling   throttling as the machine is set up; averaged over kLagSeconds, like avg10
//   memory           fixed + batch * per sample, 1 % noise, never above the limit
#include <algorithm>
#include <array>
#include <cmath>

#include "dynamix/simulator/cluster.h"

namespace dynamix {
namespace {

constexpr double kPayloadBytes = 1448;
constexpr int kNoises = 8;

// Uniform numbers of variance 1, four to a word: enough for measurement noise.
std::array<double, kNoises> DrawNoise(Rng& rng) {
  constexpr double kRange = 2 * 1.7320508075688772;  // 2 sqrt(3)
  std::array<double, kNoises> noise;
  for (int i = 0; i < kNoises; i += 4) {
    const std::uint64_t bits = rng.Next();
    for (int j = 0; j < 4; ++j) {
      const auto word = static_cast<std::uint16_t>(bits >> (16 * j));
      noise[i + j] = kRange * ((word + 0.5) * 0x1.0p-16 - 0.5);
    }
  }
  return noise;
}

double Share(double value) { return std::clamp(value, 0.0, 1.0); }

}  // namespace

Report Cluster::MeasureWorker(int worker) {
  const std::array<double, kNoises> noise = DrawNoise(measure_rng_);
  Report report;
  report.rank = worker;
  report.iterations = iterations_;
  report.local_batch = batches_[worker];
  report.iteration_ms = timing_.iteration_ms;
  report.compute_ms = timing_.compute_ms[worker];
  report.wait_ms = std::max(0.0, timing_.slowest_ms - report.compute_ms);
  report.communication_ms = timing_.communication_ms;
  report.network = MeasureNetwork(worker, std::span(noise).first(4));
  report.host = MeasureHost(worker, std::span(noise).last(4));
  return report;
}

NetworkReport Cluster::MeasureNetwork(int worker, std::span<const double> noise) const {
  NetworkReport network;
  if (present_count_ < 2 || tier_ == NetworkTier::kNone) return network;
  const Node& node = nodes_[worker];
  const WorkerState& state = state_[worker];
  const double n = present_count_;
  const double share = communication_ == Communication::kRing ? 2 * (n - 1) / n : 1;
  const double loss = std::min(0.9, node.loss + state.added_loss);
  network.tier = tier_;
  network.bytes_sent = 1.02 * share * cost_.gradient_bytes * iterations_;
  network.bytes_received = network.bytes_sent;
  network.delivery_mbps = state.rate_mbps * std::max(0.1, 1 + 0.05 * noise[0]);
  if (tier_ == NetworkTier::kInterface) return network;  // interface counters know no flows
  const double segments = std::max(1.0, network.bytes_sent / kPayloadBytes);
  network.retransmission_ratio =
      Share(loss + 1e-5 + std::sqrt((loss + 1e-5) * (1 - loss) / segments) * noise[1]);
  const double utilisation = slowest_rate_mbps_ / state.rate_mbps;
  const double queue = 1.05 + 2 * utilisation * utilisation * utilisation * utilisation;
  network.minimum_rtt_us = 2000 * node.latency_ms * (1 + 0.01 * std::abs(noise[2]));
  network.smoothed_rtt_us = network.minimum_rtt_us * std::max(1.0, queue * (1 + 0.1 * noise[3]));
  return network;
}

HostReport Cluster::MeasureHost(int worker, std::span<const double> noise) {
  WorkerState& state = state_[worker];
  const double compute_share = timing_.compute_ms[worker] / timing_.iteration_ms;
  const double communication_share = timing_.communication_ms / timing_.iteration_ms;
  const double wait_share = std::max(0.0, 1 - compute_share - communication_share);
  const double taken = 0.9 * (1 - 1 / std::max(1.0, state.slowdown)) * compute_share;
  const double quota = limits_[worker].quota_share;
  state.pressure += lag_weight_ * (0.02 + (1 - quota) * taken - state.pressure);
  state.throttled += lag_weight_ * (quota * taken - state.throttled);
  HostReport host;
  const double used = 0.97 * compute_share / std::max(1.0, state.slowdown) +
                      0.3 * communication_share + 0.05 * wait_share;
  host.cpu_use = Share(used * (1 + 0.03 * noise[0]));
  host.cpu_throttled = Share(state.throttled * (1 + 0.1 * noise[1]));
  host.cpu_pressure = Share(state.pressure * (1 + 0.15 * noise[2]));
  host.memory_limit_bytes = nodes_[worker].memory_gb * 1e9;
  const int resident = std::min(batches_[worker], limits_[worker].memory_batch);
  host.memory_used_bytes =
      std::min(host.memory_limit_bytes,
               (cost_.memory_fixed_bytes + resident * cost_.memory_per_sample_bytes) *
                   (1 + 0.01 * noise[3]));
  return host;
}

}  // namespace dynamix
