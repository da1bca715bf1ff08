// AdvisedWorker: two lines make any training loop adaptive.
//
//   dynamix::AdvisedWorker worker(options);
//   while (...) { train one iteration of worker.batch() samples;  worker.EndIteration(stats); }
// It gathers the iterations of a window into a report, submits it, and takes advice between two
// iterations. Ranks may switch in different iterations, so weight each rank's gradient by the
// samples it really used (sum the gradients, divide by the summed count). The constructor asks where
// to begin (RemoteAdvisorOptions::opening_s); after that nothing waits for the network. One thread
// per object. Options are checked at construction (InputError); nothing fails after that.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "dynamix/core/report.h"
#include "dynamix/rpc/remote_advisor.h"

namespace dynamix {

// One iteration as this rank saw it. Everything but iteration_ms may be missing.
struct IterationStats {
  double iteration_ms = kMissing;
  double compute_ms = kMissing;        // own forward and backward
  double wait_ms = kMissing;           // until the slowest rank was ready
  double communication_ms = kMissing;  // exchange not hidden behind compute
  double loss = kMissing;              // of the whole job; a rank that knows only its own, its own
  double accuracy = kMissing;
  double gradient_norm = kMissing;  // of the averaged gradient
  double noise_scale = kMissing;    // smoothed, in samples
  double learning_rate = kMissing;
  double progress = kMissing;  // part of the schedule that is over
};

// Calls visit(name, members...) for every field of an iteration: of an IterationStats, a
// dynamix_iteration (dynamix.h) or both, whose members have the same names. They are the fields of
// core/report_fields.h that an iteration has.
template <typename Visit, typename... Iterations>
constexpr void VisitIteration(Visit&& visit, Iterations&... of) {
  visit("iteration_ms", of.iteration_ms...);
  visit("compute_ms", of.compute_ms...);
  visit("wait_ms", of.wait_ms...);
  visit("communication_ms", of.communication_ms...);
  visit("loss", of.loss...);
  visit("accuracy", of.accuracy...);
  visit("gradient_norm", of.gradient_norm...);
  visit("noise_scale", of.noise_scale...);
  visit("learning_rate", of.learning_rate...);
  visit("progress", of.progress...);
}
inline constexpr int kIterationFields = [] {
  int count = 0;
  VisitIteration([&](const char*) { ++count; });
  return count;
}();
static_assert(sizeof(IterationStats) == kIterationFields * sizeof(double), "list every field");

struct AdvisedWorkerOptions {
  RemoteAdvisorOptions advisor;
  BatchBounds bounds;
  int start_batch = 32;
  int window_iterations = kWindowIterations;  // [1, 1000000]
  // Adds network and host measurements to a report; empty: they are missing.
  std::function<void(Report&)> measure;
};

class AdvisedWorker {
 public:
  explicit AdvisedWorker(const AdvisedWorkerOptions& options);

  int batch() const { return batch_; }  // of the next iteration
  // Returns batch().
  int EndIteration(const IterationStats& stats);
  RemoteAdvisorCounts counts() const { return advisor_.counts(); }

 private:
  // Mean of what was measured; missing when nothing was.
  struct Mean {
    double sum = 0;
    int count = 0;
    void Add(double value);
    double value() const { return count > 0 ? sum / count : kMissing; }
  };
  struct Window {
    int iterations = 0;
    std::array<Mean, kIterationFields> means;  // in the order of VisitIteration
  };

  void Submit(const IterationStats& last);

  AdvisedWorkerOptions options_;
  RemoteAdvisor advisor_;
  int batch_;
  std::int64_t windows_ = 0;
  Window window_;
};

}  // namespace dynamix
