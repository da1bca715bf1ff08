#include "dynamix/training/in_process_advisor.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

// Calls visit for every number of an entry, in one order for packing and unpacking.
template <typename Entry, typename Visit>
void VisitEntry(Entry& entry, Visit&& visit) {
  visit(entry.bounds.min), visit(entry.bounds.max), visit(entry.bounds.granularity);
  visit(entry.bounds.dead_band), visit(entry.start_batch), visit(entry.batch);
  auto& report = *entry.report;
  visit(report.rank), visit(report.window), visit(report.iterations), visit(report.local_batch);
  visit(report.iteration_ms), visit(report.compute_ms), visit(report.wait_ms);
  visit(report.communication_ms);
  auto& network = report.network;
  visit(network.tier), visit(network.bytes_sent), visit(network.bytes_received);
  visit(network.retransmission_ratio), visit(network.smoothed_rtt_us);
  visit(network.minimum_rtt_us), visit(network.delivery_mbps);
  auto& host = report.host;
  visit(host.cpu_use), visit(host.cpu_throttled), visit(host.cpu_pressure);
  visit(host.memory_used_bytes), visit(host.memory_limit_bytes);
  auto& training = report.training;
  visit(training.loss), visit(training.accuracy), visit(training.accuracy_spread);
  visit(training.gradient_norm), visit(training.gradient_norm_spread);
  visit(training.noise_scale), visit(training.learning_rate), visit(training.progress);
}

}  // namespace

std::vector<double> PackEntry(const RoundEntry& entry) {
  DYNAMIX_CHECK(entry.report.has_value(), "an entry with its report");
  std::vector<double> packed = {entry.active ? 1.0 : 0.0};
  VisitEntry(entry, [&](const auto& value) { packed.push_back(static_cast<double>(value)); });
  packed.resize(kPackedEntry, 0.0);
  return packed;
}

RoundEntry UnpackEntry(const double* packed) {
  RoundEntry entry;
  entry.active = *packed++ != 0;
  entry.report.emplace();
  VisitEntry(entry, [&](auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(*packed++);
  });
  return entry;
}

InProcessAdvisor::InProcessAdvisor(WorkerGroup& group, const OptimizerOptions& optimizer,
                                   Decide decide, OnRound on_round, double target_accuracy)
    : group_(group),
      optimizer_(optimizer),
      decide_(std::move(decide)),
      on_round_(std::move(on_round)),
      target_accuracy_(target_accuracy) {}

Round InProcessAdvisor::MakeRound(std::int64_t index, const std::vector<double>& packed) const {
  Round round;
  round.index = index;
  round.rule = optimizer_.rule;
  round.schedule = optimizer_.schedule;
  round.adaptive = optimizer_.kind == OptimizerKind::kAdam;
  round.base_learning_rate = optimizer_.learning_rate;
  round.base_batch = optimizer_.base_batch;
  round.target_accuracy = target_accuracy_;
  for (std::size_t at = 0; at < packed.size(); at += kPackedEntry) {
    const RoundEntry& entry = round.entries.emplace_back(UnpackEntry(packed.data() + at));
    round.seconds =
        std::max(round.seconds, 1e-3 * entry.report->iteration_ms * entry.report->iterations);
  }
  return round;
}

Status InProcessAdvisor::Submit(std::int64_t index, const RoundEntry& entry) {
  batch_.reset();
  const std::size_t size = group_.size();
  std::vector<double> packed(size * kPackedEntry), sizes(size);
  Status gathered = group_.AllGather(PackEntry(entry), packed);
  if (!gathered) return gathered;
  if (group_.rank() == 0) {
    const Round round = MakeRound(index, packed);
    const std::vector<int> decided = decide_(round);
    DYNAMIX_CHECK(decided.size() == size, "one size per worker");
    std::copy(decided.begin(), decided.end(), sizes.begin());
    if (on_round_) on_round_(round, decided);
    history_.push_back(static_cast<double>(index));
    history_.insert(history_.end(), packed.begin(), packed.end());
  }
  Status sent = group_.Broadcast(std::span<double>(sizes));
  if (sent) batch_ = static_cast<int>(sizes[group_.rank()]);
  return sent;
}

Answer InProcessAdvisor::Poll() { return {.ready = true, .batch = batch_}; }

std::string InProcessAdvisor::Save() const {
  std::string bytes(history_.size() * sizeof(double), '\0');
  std::memcpy(bytes.data(), history_.data(), bytes.size());
  return bytes;
}

Status InProcessAdvisor::Restore(const std::string& state) {
  const std::size_t stride = 1 + kPackedEntry * static_cast<std::size_t>(group_.size());
  if (state.size() % (stride * sizeof(double)) != 0)
    throw InputError(
        "the advisor's state in the checkpoint is of a job with another number of ranks");
  history_.assign(state.size() / sizeof(double), 0.0);
  std::memcpy(history_.data(), state.data(), state.size());
  // -1: nothing was decided yet.
  std::vector<double> sizes(group_.size(), -1.0);
  for (std::size_t at = 0; group_.rank() == 0 && at < history_.size(); at += stride) {
    const auto first = history_.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<int> decided =
        decide_(MakeRound(static_cast<std::int64_t>(*first),
                          {first + 1, first + static_cast<std::ptrdiff_t>(stride)}));
    std::copy(decided.begin(), decided.end(), sizes.begin());
  }
  batch_.reset();
  if (Status sent = group_.Broadcast(std::span<double>(sizes)); !sent) return sent;
  if (sizes[group_.rank()] >= 0) batch_ = static_cast<int>(sizes[group_.rank()]);
  return Nothing{};
}

}  // namespace dynamix
