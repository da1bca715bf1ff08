// A scenario: on what is trained. Nodes, their network, and events that change them while the job
// runs; for any number of workers. The same file drives `sim`, `virtual` and `live`. Format:
// docs/scenarios.md.
//
// Plain values, validated once by LoadScenario or Validate, which throw InputError naming file,
// line, key, value and allowed range. ResolveNodes and ResolveEvents are pure: the same arguments
// give the same cluster.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "dynamix/core/batch.h"
#include "dynamix/core/report.h"

namespace dynamix {

class TomlFields;

enum class Communication : int { kRing = 0, kParameterServer };

// One machine.
struct Node {
  double speed = 1;              // relative to the device of the workload's sample_ms, (0, 1e4]
  double overhead_ms = 2;        // fixed cost of an iteration, [0, 1e6]
  double memory_gb = 16;         // (0, 1e5]
  double bandwidth_mbps = 1000;  // (0, 1e6]
  double latency_ms = 0.1;       // one way, [0.001, 1e4]
  double loss = 0;               // share of segments lost, [0, 0.5]
  double jitter = 0.05;          // deviation of log compute time, per iteration, [0, 1]
};

// `count` equal nodes in a row of the pattern.
struct NodeGroup {
  int count = 1;
  Node node{};
};

enum class EventKind : int { kSlowdown = 0, kBandwidth, kLoss, kLeave, kJoin };

// Which workers an event hits. kRandom draws anew for every occurrence.
enum class EventTarget : int { kFastest = 0, kSlowest, kSpread, kRandom };

// Something that happens at `at` for `duration`, and again every `every`. Times are in units of the
// scenario's clock.
//
//   slowdown    compute takes `factor` times as long
//   bandwidth   the rate is multiplied by `factor`
//   loss        `factor` is added to the node's loss
//   leave       away during the event                              (no factor)
//   join        away before the event, then present for good       (no factor)
struct Event {
  EventKind kind = EventKind::kSlowdown;
  EventTarget target = EventTarget::kFastest;
  double share = 0.25;  // of the workers, (0, 1]; at least one worker
  double at = 0;
  double duration = std::numeric_limits<double>::infinity();
  double every = 0;  // 0: once
  double factor = 2;
};

// Unit of event times and of time_budget. kRun: 1 is the nominal length of the run
// (SimulatedCluster's nominal_seconds), so that one file fits any workload and number of workers.
enum class ScenarioClock : int { kRun = 0, kSeconds };

struct Scenario {
  std::string name = "unnamed";  // the file's stem
  std::string description;
  int workers = 8;      // when the user names no number, [1, 4096]
  int start_batch = 0;  // local; 0: the workload's base batch in equal parts
  BatchBounds bounds{.min = 4, .max = 1024};
  Communication communication = Communication::kRing;
  double server_mbps = 10000;  // the parameter server's link, (0, 1e6]
  ScenarioClock clock = ScenarioClock::kRun;
  double time_budget = 2;                         // in units of the clock, > 0
  double sample_budget = 8;                       // in lengths of the workload's schedule, > 0
  double late_reports = 0;                        // chance that a report misses its round, [0, 0.5]
  NetworkTier network_tier = NetworkTier::kEbpf;  // where network measurements come from
  std::vector<NodeGroup> nodes{{}};
  std::vector<Event> events;
  std::vector<std::string> workloads;  // names of the workloads a suite runs it with

  void Validate() const;
};

// The nodes of `workers` workers. With P nodes in the pattern: worker i is pattern[i mod P]; with
// fewer workers than P, they are spread evenly over the pattern, first and last included.
std::vector<Node> ResolveNodes(const Scenario& scenario, int workers);

// One change of one worker, on the job's clock.
struct TimedEvent {
  EventKind kind;  // never kJoin: a late join is an absence (kLeave) from 0 to its time
  int worker;
  double begin_s;
  double end_s;  // infinity: for good
  double factor;
};

// Every occurrence up to `horizon` (in units of the clock), sorted by begin_s; `unit_s` is the
// length of one unit. `seed` settles random targets.
std::vector<TimedEvent> ResolveEvents(const Scenario& scenario, const std::vector<Node>& nodes,
                                      double unit_s, double horizon, std::uint64_t seed);

void VisitFields(TomlFields& fields, Scenario& scenario);
Scenario LoadScenario(const std::string& path);
Scenario ParseScenario(std::string_view text, const std::string& source);
std::string FormatScenario(const Scenario& scenario);

}  // namespace dynamix
