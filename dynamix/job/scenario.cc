#include "dynamix/job/scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/rng.h"
#include "dynamix/job/toml_file.h"

namespace dynamix {
namespace {

using Need = TomlFields::Need;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostWorkers = 4096;
constexpr std::array<std::string_view, 2> kCommunications = {"ring", "parameter_server"};
constexpr std::array<std::string_view, 2> kClocks = {"run", "seconds"};
constexpr std::array<std::string_view, 5> kTiers = {"none", "interface", "own_sockets", "inet_diag",
                                                    "ebpf"};
constexpr std::array<std::string_view, 5> kEventKinds = {"slowdown", "bandwidth", "loss", "leave",
                                                         "join"};
constexpr std::array<std::string_view, 4> kEventTargets = {"fastest", "slowest", "spread",
                                                           "random"};

void VisitGroup(TomlFields& fields, NodeGroup& group) {
  fields.Integer("count", group.count, 1, kMostWorkers);
  fields.Number("speed", group.node.speed, 1e-4, 1e4);
  fields.Number("overhead_ms", group.node.overhead_ms, 0, 1e6);
  fields.Number("memory_gb", group.node.memory_gb, 1e-3, 1e5);
  fields.Number("bandwidth_mbps", group.node.bandwidth_mbps, 1e-3, 1e6);
  fields.Number("latency_ms", group.node.latency_ms, 1e-3, 1e4);
  fields.Number("loss", group.node.loss, 0, 0.5);
  fields.Number("jitter", group.node.jitter, 0, 1);
}

void VisitEvent(TomlFields& fields, Event& event) {
  fields.Choice("kind", event.kind, kEventKinds, Need::kRequired);
  fields.Choice("target", event.target, kEventTargets);
  fields.Number("share", event.share, 1e-6, 1);
  fields.Number("at", event.at, 0, 1e9);
  fields.Number("duration", event.duration, 1e-6, kInfinity);
  fields.Number("every", event.every, 0, 1e9);
  fields.Number("factor", event.factor, 1e-4, 1e4);
}

// The workers an occurrence hits.
std::vector<int> PickWorkers(const Event& event, const std::vector<Node>& nodes, Rng& rng) {
  const int workers = static_cast<int>(nodes.size());
  const int count = std::clamp(static_cast<int>(std::lround(event.share * workers)), 1, workers);
  std::vector<int> order(workers);
  std::iota(order.begin(), order.end(), 0);
  switch (event.target) {
    case EventTarget::kFastest:
      std::stable_sort(order.begin(), order.end(),
                       [&](int a, int b) { return nodes[a].speed > nodes[b].speed; });
      break;
    case EventTarget::kSlowest:
      std::stable_sort(order.begin(), order.end(),
                       [&](int a, int b) { return nodes[a].speed < nodes[b].speed; });
      break;
    case EventTarget::kSpread:
      for (int i = 0; i < count; ++i)
        order[i] = static_cast<int>(std::int64_t{i} * workers / count);
      break;
    case EventTarget::kRandom:
      for (int i = 0; i < count; ++i) std::swap(order[i], order[i + rng.Below(workers - i)]);
      break;
  }
  order.resize(count);
  return order;
}

}  // namespace

void Scenario::Validate() const {
  bounds.Validate(name + ": bounds");
  if (nodes.empty()) throw InputError(name + ": node is missing: expected at least one [[node]]");
  if (start_batch != 0 && (start_batch < bounds.lowest() || start_batch > bounds.highest())) {
    throw InputError::OutOfRange(name + ": start_batch", start_batch,
                                 "0 or a value in [" + std::to_string(bounds.lowest()) + ", " +
                                     std::to_string(bounds.highest()) + "], its bounds");
  }
  for (const Event& event : events) {
    const auto refuse = [&](std::string_view field, double value, std::string_view allowed) {
      throw InputError::OutOfRange(name + ": event." + std::string(field), value, allowed);
    };
    if (event.kind == EventKind::kSlowdown && event.factor < 1)
      refuse("factor", event.factor, "a slowdown of 1 or more");
    if (event.kind == EventKind::kBandwidth && event.factor > 1)
      refuse("factor", event.factor, "a share of the bandwidth in (0, 1]");
    if (event.kind == EventKind::kLoss && event.factor > 0.5)
      refuse("factor", event.factor, "a loss in (0, 0.5]");
    RequireInRange(name + ": event.at, with this time_budget,", event.at, 0.0, time_budget);
    if (event.every > 0 && event.duration > event.every)
      refuse("duration", event.duration, "at most `every`: occurrences do not overlap");
  }
}

std::vector<Node> ResolveNodes(const Scenario& scenario, int workers) {
  DYNAMIX_CHECK(workers >= 1, "a cluster has workers");
  std::vector<Node> pattern;
  for (const NodeGroup& group : scenario.nodes)
    pattern.insert(pattern.end(), group.count, group.node);
  const int length = static_cast<int>(pattern.size());
  std::vector<Node> nodes;
  for (int i = 0; i < workers; ++i) {
    const int at = workers >= length ? i % length
                   : workers == 1    ? 0
                                     : (i * (length - 1) + (workers - 1) / 2) / (workers - 1);
    nodes.push_back(pattern[at]);
  }
  return nodes;
}

std::vector<TimedEvent> ResolveEvents(const Scenario& scenario, const std::vector<Node>& nodes,
                                      double unit_s, double horizon, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<TimedEvent> resolved;
  for (const Event& event : scenario.events) {
    for (double at = event.at; at <= horizon; at += event.every) {
      for (const int worker : PickWorkers(event, nodes, rng)) {
        if (event.kind == EventKind::kJoin) {
          resolved.push_back({EventKind::kLeave, worker, 0, at * unit_s, 1});
        } else {
          resolved.push_back(
              {event.kind, worker, at * unit_s, (at + event.duration) * unit_s, event.factor});
        }
      }
      if (event.every <= 0 || event.kind == EventKind::kJoin) break;
    }
  }
  std::stable_sort(resolved.begin(), resolved.end(),
                   [](const TimedEvent& a, const TimedEvent& b) { return a.begin_s < b.begin_s; });
  return resolved;
}

void VisitFields(TomlFields& fields, Scenario& scenario) {
  fields.Text("description", scenario.description);
  fields.Integer("workers", scenario.workers, 1, kMostWorkers);
  fields.Integer("start_batch", scenario.start_batch, 0, 1 << 24);
  fields.Choice("communication", scenario.communication, kCommunications);
  fields.Number("server_mbps", scenario.server_mbps, 1e-3, 1e6);
  fields.Choice("clock", scenario.clock, kClocks);
  fields.Number("time_budget", scenario.time_budget, 1e-6, 1e9);
  fields.Number("sample_budget", scenario.sample_budget, 1e-6, 1e9);
  fields.Number("late_reports", scenario.late_reports, 0, 0.5);
  fields.Choice("network_tier", scenario.network_tier, kTiers);
  fields.Texts("workloads", scenario.workloads);
  fields.Section("bounds", [&](TomlFields& inner) {
    inner.Integer("min", scenario.bounds.min, 1, 1 << 24);
    inner.Integer("max", scenario.bounds.max, 1, 1 << 24);
    inner.Integer("granularity", scenario.bounds.granularity, 1, 1 << 24);
    inner.Number("dead_band", scenario.bounds.dead_band, 0, 0.99);
  });
  fields.Items("node", scenario.nodes, VisitGroup);
  fields.Items("event", scenario.events, VisitEvent);
}

Scenario ParseScenario(std::string_view text, const std::string& source) {
  Scenario scenario;
  scenario.name = source;
  ReadToml(text, source, [&](TomlFields& fields) { VisitFields(fields, scenario); });
  scenario.Validate();
  return scenario;
}

Scenario LoadScenario(const std::string& path) {
  Scenario scenario;
  scenario.name = path;  // what Validate names
  ReadTomlFile(path, [&](TomlFields& fields) { VisitFields(fields, scenario); });
  scenario.Validate();
  scenario.name = std::filesystem::path(path).stem().string();
  return scenario;
}

std::string FormatScenario(const Scenario& scenario) {
  Scenario copy = scenario;
  return WriteToml([&](TomlFields& fields) { VisitFields(fields, copy); });
}

}  // namespace dynamix
