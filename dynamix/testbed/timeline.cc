#include "dynamix/testbed/timeline.h"

#include <algorithm>
#include <cmath>

#include "dynamix/simulator/simulated_cluster.h"

namespace dynamix {
namespace {

constexpr double kMostLoss = 0.9;

}  // namespace

std::vector<TimedEvent> EventsOf(const Scenario& scenario, const Workload& workload, int workers,
                                 std::uint64_t seed) {
  // Only for its clock: it never runs, so it needs no engine.
  return SimulatedCluster(scenario, workload, workers, nullptr, seed).events();
}

double BudgetSeconds(const Scenario& scenario, const Workload& workload, int workers) {
  return SimulatedCluster(scenario, workload, workers, nullptr, 0).time_budget_seconds();
}

Node NodeAt(const Node& node, const std::vector<TimedEvent>& events, int worker, double seconds) {
  Node now = node;
  for (const TimedEvent& event : events) {
    if (event.worker != worker || seconds < event.begin_s || seconds >= event.end_s) continue;
    if (event.kind == EventKind::kSlowdown) now.speed /= event.factor;
    if (event.kind == EventKind::kBandwidth) now.bandwidth_mbps *= event.factor;
    if (event.kind == EventKind::kLoss) now.loss = std::min(now.loss + event.factor, kMostLoss);
  }
  return now;
}

std::vector<double> ChangesOf(const std::vector<TimedEvent>& events,
                              const std::vector<EventKind>& kinds) {
  std::vector<double> changes;
  for (const TimedEvent& event : events) {
    if (std::find(kinds.begin(), kinds.end(), event.kind) == kinds.end()) continue;
    changes.push_back(event.begin_s);
    if (std::isfinite(event.end_s)) changes.push_back(event.end_s);
  }
  std::sort(changes.begin(), changes.end());
  changes.erase(std::unique(changes.begin(), changes.end()), changes.end());
  return changes;
}

}  // namespace dynamix
