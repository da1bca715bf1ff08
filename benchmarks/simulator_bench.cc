// Worker-windows per second of the simulated cluster on the quadratic engine, one thread, reports
// included; and whether their cost stays the same from 8 to 1,024 workers. Prints a table, or one
// JSON object with --json.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "dynamix/simulator/engine.h"
#include "dynamix/simulator/simulated_cluster.h"

namespace {

using dynamix::Round;
using dynamix::Scenario;
using dynamix::SimulatedCluster;
using dynamix::Workload;

// Unequal nodes, a lossy one, contention that comes and goes: what learning runs on.
Scenario BenchScenario() {
  Scenario scenario;
  scenario.start_batch = 32;
  scenario.time_budget = 10;
  scenario.nodes = std::vector<dynamix::NodeGroup>(2);
  for (auto& group : scenario.nodes) group.count = 4;
  scenario.nodes[0].node.speed = 2;
  scenario.nodes[1].node.loss = 1e-3;
  scenario.events = {
      {.kind = dynamix::EventKind::kSlowdown, .at = 0.1, .duration = 0.1, .every = 0.3}};
  return scenario;
}

SimulatedCluster MakeCluster(int workers) {
  Workload workload;
  workload.optimizer.learning_rate = 0.01;
  workload.optimizer.planned_samples = 1e9;
  workload.target.run_share = 0.9;
  return SimulatedCluster({.scenario = BenchScenario(), .workload = workload, .workers = workers},
                          MakeConvergence(workload, {}, 1));
}

// Best of several runs, in worker-windows per second.
double Measure(int workers, int windows) {
  SimulatedCluster cluster = MakeCluster(workers);
  double best = 0;
  for (int run = 0; run < 7; ++run) {
    Round round = cluster.Reset();
    std::vector<int> sizes(workers);
    const auto begin = std::chrono::steady_clock::now();
    for (int window = 0; window < windows; ++window) {
      // The next sizes follow from the round, as they do for a policy.
      for (int i = 0; i < workers; ++i) sizes[i] = 24 + (round.entries[i].batch + window) % 16;
      round = cluster.Step(sizes);
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, workers * static_cast<double>(windows) / seconds.count());
  }
  return best;
}

struct Result {
  const char* name;
  double value;
  const char* unit;
  double target;
  const char* better;
};

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::strcmp(argv[1], "--json") == 0;
  const double small = Measure(8, 20000);
  const double large = Measure(1024, 200);
  const std::vector<Result> results = {
      {"quadratic_worker_windows_per_s", small, "1/s", 1e6, "higher"},
      {"quadratic_worker_windows_per_s_1024", large, "1/s", 1e6 / 1.3, "higher"},
      {"cost_per_worker_1024_over_8", small / large, "ratio", 1.3, "lower"}};
  std::string text = json ? "{\"bench\": \"simulator\", \"results\": [" : "";
  for (const Result& r : results) {
    char line[256];
    std::snprintf(
        line, sizeof line,
        json ? "%s{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"target\": %.6g, "
               "\"better\": \"%s\"}"
             : "%s%-40s %12.4g %-6s target %10.4g, %s is better\n",
        json && &r != &results.front() ? ", " : "", r.name, r.value, r.unit, r.target, r.better);
    text += line;
  }
  std::printf("%s%s", text.c_str(), json ? "]}\n" : "");
  return 0;
}
