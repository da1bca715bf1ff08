#include "dynamix/job/timeline.h"

#include <algorithm>
#include <cmath>

namespace dynamix {
namespace {

constexpr double kMostLoss = 0.9;

}  // namespace

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
