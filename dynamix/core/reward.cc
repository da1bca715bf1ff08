#include "dynamix/core/reward.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {
namespace {

double Change(int from, int to) {
  if (from <= 0 || to <= 0) return 0;
  return std::min(1.0, std::abs(std::log2(static_cast<double>(to) / from)));
}

// The slowest and second slowest compute time of the round; 0 when missing.
struct Slowest {
  double first = 0, second = 0;
};

bool Measured(const RoundEntry& entry) {
  return entry.Reported() && !IsMissing(entry.report->compute_ms) &&
         entry.report->iteration_ms > 0 && !IsMissing(entry.report->iteration_ms);
}

Slowest FindSlowest(const Round& round) {
  Slowest slowest;
  for (const RoundEntry& entry : round.entries) {
    if (!Measured(entry)) continue;
    const double compute = entry.report->compute_ms;
    if (compute > slowest.first) {
      slowest.second = slowest.first;
      slowest.first = compute;
    } else {
      slowest.second = std::max(slowest.second, compute);
    }
  }
  return slowest;
}

double WaitShare(const Report& report) {
  if (IsMissing(report.wait_ms)) return 0;
  return std::clamp(report.wait_ms / report.iteration_ms, 0.0, 1.0);
}

}  // namespace

Rewards ComputeRewards(const Round& round, const std::vector<int>& previous,
                       double progress_seconds, const RewardWeights& weights) {
  const std::size_t count = round.entries.size();
  DYNAMIX_CHECK(previous.size() == count, "one previous batch per worker");
  Rewards rewards;
  rewards.local.assign(count, 0);

  const Slowest slowest = FindSlowest(round);
  double wait = 0, change = 0;
  int measured = 0, active = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const RoundEntry& entry = round.entries[i];
    if (!entry.active) continue;
    ++active;
    change += Change(previous[i], entry.batch);
    if (!Measured(entry)) continue;
    ++measured;
    wait += WaitShare(*entry.report);
  }

  TeamReward& team = rewards.team;
  if (round.seconds > 0 && !IsMissing(progress_seconds)) {
    team.quality = std::clamp(progress_seconds / round.seconds - 1, -5.0, 5.0);
  }
  if (measured > 0) team.efficiency = -wait / measured;
  if (active > 0) team.stability = -change / active;
  team.total = weights.quality * team.quality + weights.efficiency * team.efficiency +
               weights.stability * team.stability;

  for (std::size_t i = 0; i < count; ++i) {
    const RoundEntry& entry = round.entries[i];
    if (!Measured(entry)) continue;
    const Report& report = *entry.report;
    const double lead =
        measured > 1 ? std::max(0.0, report.compute_ms - slowest.second) / report.iteration_ms : 0;
    const double blame = -std::min(1.0, lead) - WaitShare(report) / measured;
    rewards.local[i] = weights.straggler * blame -
                       weights.stability * Change(previous[i], entry.batch) +
                       weights.team * team.total;
  }
  return rewards;
}

}  // namespace dynamix
