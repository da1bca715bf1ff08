// The cluster model: how long a window takes on these nodes with these batches, and what each
// worker measures of it.
//
// Knows nothing about convergence; also the clock of the virtual cluster. Equations and sources
// head cluster.cc. Not thread-safe; deterministic given its generator. Never fails: batches over
// the memory limit run in several micro batches, as a live worker would after running out of
// memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "dynamix/core/report.h"
#include "dynamix/core/rng.h"
#include "dynamix/job/scenario.h"
#include "dynamix/job/workload.h"

namespace dynamix {

// Means over the iterations of one window.
struct WindowTiming {
  double seconds = 0;
  double iteration_ms = 0;
  double slowest_ms = 0;           // of the slowest worker's compute, iteration by iteration
  double communication_ms = 0;     // not hidden behind backward
  std::vector<double> compute_ms;  // per worker; 0 when absent
};

class Cluster {
 public:
  Cluster(const Scenario& scenario, const CostOptions& cost, int workers);

  // Sorted by begin_s, as ResolveEvents makes them. Also goes back to the start of the job.
  void SetEvents(std::vector<TimedEvent> events);
  // Back to the start of the job; `rng` drives jitter and measurement noise from here on.
  void Restart(const Rng& rng);

  // Applies what has happened by `seconds` and settles who is present in the window that begins
  // then.
  void BeginWindow(double seconds);
  // `batches` of absent workers are ignored. The result is valid until the next call.
  const WindowTiming& RunWindow(const std::vector<int>& batches, int iterations);
  // What `worker` measured of the last window: everything but training and window number.
  Report MeasureWorker(int worker);

  int workers() const { return static_cast<int>(nodes_.size()); }
  bool present(int worker) const { return state_[worker].present; }
  int present_count() const { return present_count_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<TimedEvent>& events() const { return events_; }
  // The largest local batch that fits into the worker's memory at once, >= 1.
  int MemoryBatch(int worker) const { return limits_[worker].memory_batch; }

  // Truth of the present moment: expected values, jitter left out.
  double ComputeMs(int worker, double batch) const;
  double CommunicationMs() const;  // of one exchange among the present workers, before hiding
  double ExposedMs(double slowest_compute_ms) const;
  // Real-valued local batches of the present workers that sum to `global_batch` and finish
  // together; 0 for the absent ones. `bounds` has one entry per worker.
  std::vector<double> Balance(double global_batch, const std::vector<BatchBounds>& bounds) const;

 private:
  // What events have made of a node.
  struct WorkerState {
    double slowdown = 1, bandwidth_factor = 1, added_loss = 0;
    int slowdowns = 0, bandwidths = 0, losses = 0, absences = 0;  // events under way
    bool present = true;
    double rate_mbps = 0;                // what the link carries now
    double pressure = 0, throttled = 0;  // lagging averages
  };
  // What never changes.
  struct WorkerLimits {
    int memory_batch = 0;
    double quota_share = 0;  // how much of a slowdown shows as throttling, not as pressure
  };
  static constexpr double kLagSeconds = 10;  // of pressure and throttling

  struct Edge {
    double seconds;
    std::size_t event;
    bool begins;
  };

  bool ApplyEdgesUntil(double seconds);
  void ApplyEdge(const Edge& edge);
  void UpdateNetwork();
  double DeviceMs(double batch) const;
  int IterationsBeforeNextEdge(int left) const;
  void RunSegment(const std::vector<int>& batches, int iterations);
  NetworkReport MeasureNetwork(int worker, std::span<const double> noise) const;
  HostReport MeasureHost(int worker, std::span<const double> noise);

  CostOptions cost_;
  Communication communication_;
  NetworkTier tier_;
  double server_mbps_;
  std::vector<Node> nodes_;
  std::vector<WorkerLimits> limits_;
  std::vector<WorkerState> state_;
  std::vector<TimedEvent> events_;
  std::vector<Edge> edges_;  // sorted by time
  std::size_t next_edge_ = 0;
  int present_count_ = 0;
  bool membership_changed_ = false;  // since the last window began
  double exchange_ms_ = 0;           // CommunicationMs of the present moment
  double slowest_rate_mbps_ = 0;
  double now_s_ = 0;
  Rng rng_{0};          // jitter
  Rng measure_rng_{0};  // its own stream: measuring does not change what happens

  // The last window.
  WindowTiming timing_;
  std::vector<int> batches_;
  int iterations_ = 0;
  std::vector<double> expected_ms_;  // ComputeMs of a segment
  double lag_weight_ = 1;
};

}  // namespace dynamix
