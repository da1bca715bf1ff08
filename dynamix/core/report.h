// A report: what one worker measured in one window. Plain values; copying is the only operation.
//
// Missing is a value: kMissing (NaN) says "not measured here" (no eBPF, one rank, first window),
// and every reader treats any non-finite number the same way, so a hostile or broken sender can
// only make itself unseen. Every field is also in report_fields.h, with the range that numbers from
// outside are clipped to.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace dynamix {

inline constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
inline bool IsMissing(double value) { return !std::isfinite(value); }
// An exponential average after one more value, whose weight is `weight`. A missing average starts
// at that value; a missing value leaves the average as it is.
inline double Smooth(double average, double fresh, double weight) {
  if (IsMissing(fresh)) return average;
  return IsMissing(average) ? fresh : average + weight * (fresh - average);
}

inline constexpr std::int64_t kLargestWindow = std::int64_t{1} << 53;  // exact as a double

// k, the iterations of a window, unless a job says otherwise.
inline constexpr int kWindowIterations = 10;

// Where network measurements came from, best last. Visible to the policy, because a coarse source
// is noisier.
enum class NetworkTier : int { kNone = 0, kInterface, kOwnSockets, kInetDiag, kEbpf };

// TCP of the worker's job during the window.
struct NetworkReport {
  NetworkTier tier = NetworkTier::kNone;
  double bytes_sent = kMissing;            // acknowledged by the peer, >= 0
  double bytes_received = kMissing;        // >= 0
  double retransmission_ratio = kMissing;  // retransmitted over sent segments, [0, 1]
  double smoothed_rtt_us = kMissing;       // mean over sockets, weighted by bytes, > 0
  double minimum_rtt_us = kMissing;        // > 0
  double delivery_mbps = kMissing;         // what the path delivered while it was busy, > 0
};

// The worker's machine, or its slice of one (cgroup), during the window.
struct HostReport {
  double cpu_use = kMissing;        // used over allotted CPU time, [0, 1]
  double cpu_throttled = kMissing;  // share of the window the quota held the worker back, [0, 1]
  double cpu_pressure = kMissing;   // share of the window some task waited for a CPU (PSI), [0, 1]
  double memory_used_bytes = kMissing;
  double memory_limit_bytes = kMissing;
};

// The training itself. Loss, accuracy, noise scale and learning rate are of the whole job; a worker
// that knows only its own share reports that.
struct TrainingReport {
  double loss = kMissing;                  // mean training loss of the window
  double accuracy = kMissing;              // mean training accuracy of the window, [0, 1]
  double accuracy_spread = kMissing;       // standard deviation over the window's iterations, >= 0
  double gradient_norm = kMissing;         // mean norm of the averaged gradient, > 0
  double gradient_norm_spread = kMissing;  // its standard deviation over the window, >= 0
  double noise_scale = kMissing;           // smoothed, in samples, > 0 (see noise_scale.h)
  double learning_rate = kMissing;         // in effect at the end of the window, > 0
  double progress = kMissing;              // part of the schedule that is over, [0, 1]
};

struct Report {
  int rank = 0;
  std::int64_t window = 0;  // counts from 0
  int iterations = 0;       // k, > 0 in a valid report
  int local_batch = 0;      // samples of this worker in each iteration
  // Means over the window's iterations. compute: own forward and backward, >= 0. wait: idle until
  // the slowest worker was ready. communication: the part of the all-reduce not hidden behind
  // backward.
  double iteration_ms = kMissing;
  double compute_ms = kMissing;
  double wait_ms = kMissing;
  double communication_ms = kMissing;
  NetworkReport network;
  HostReport host;
  TrainingReport training;
};

}  // namespace dynamix
