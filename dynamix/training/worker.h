// Worker: one rank of a live job. Runs synchronous iterations with unequal batches, measures them,
// and follows its advisor.
//
// One iteration (docs/training.md), with local batches b_i and B = sum_i b_i:
//
//   1. computes the gradients of its own part of the next B samples, in passes of at most the micro
//      batch; s_i is their sum
//   2. sums gradients over all ranks, bucket by bucket while backward still runs, with a tail:
//        samples used, loss, correct, |s_i|^2 / b_i, ready, stop
//        each rank's next batch, in its own slot
//   3. takes one optimizer step on the sum divided by the samples really used
//   4. when every rank was ready, takes the batches of the slots from the next iteration on
//
// Out of memory in a pass halves the micro batch, lowers this worker's bound and computes the
// iteration's gradients again, also when some of them have left already: those were complete.
// Not thread-safe. Iterate fails with an Error when peers are lost, memory is too small for one
// sample, or the loss is not finite; the worker is then of no more use.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dynamix/core/advisor.h"
#include "dynamix/core/batch.h"
#include "dynamix/core/noise_scale.h"
#include "dynamix/core/report.h"
#include "dynamix/core/result.h"
#include "dynamix/core/sampler.h"
#include "dynamix/core/window_statistics.h"
#include "dynamix/job/optimizer_options.h"
#include "dynamix/training/classifier.h"
#include "dynamix/training/gradient_exchange.h"
#include "dynamix/training/optimizer.h"
#include "dynamix/training/parameters.h"
#include "dynamix/training/worker_group.h"

namespace dynamix {

// What is trained: a user's own model, or a Classifier's (TrainableOf).
struct Trainable {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;  // not trained, averaged over ranks (batch norm's statistics)
  std::int64_t samples = 0;         // in the data set, > 0
  // The sum of the losses of these samples; adds samples and correct ones to the sums.
  std::function<at::Tensor(std::span<const Sample>, PassSums&)> forward;

  Trainable();
  Trainable(const Trainable&);
  ~Trainable();
};
// `classifier` is borrowed: it is the caller's and outlives the worker.
Trainable TrainableOf(Classifier& classifier);

struct WorkerOptions {
  OptimizerOptions optimizer;
  std::uint64_t seed = 1;  // of the order of samples
  int start_batch = 32;    // local
  BatchBounds bounds;
  int micro_batch = 256;                      // samples of one forward pass at most, >= 1
  int window_iterations = kWindowIterations;  // k, >= 1
  double noise_memory = 0.95;  // weight of the past in the noise scale per iteration, [0, 1)
  // Emulates a slower device: an iteration's own compute takes at least this long (0: no change).
  std::function<double(int local_batch)> least_compute_ms;
  // Adds network and host measurements to a report.
  std::function<void(Report&)> measure;
};

// What a checkpoint holds besides the advisor's part. The same on every rank.
struct WorkerState {
  std::int64_t cursor = 0, optimizer_steps = 0, iterations = 0, windows = 0;
  std::vector<double> batches, start_batches, highest, micro_batches;  // per rank
  std::array<double, 4> noise_scale{};
  WindowStatistics::Numbers statistics{};  // of the window under way
  std::array<double, 5> timing{};          // of rank 0 in it: iterations, then sums of ms
  std::vector<float> parameters;
  std::vector<std::vector<float>> optimizer, buffers;
};

class Worker {
 public:
  // `group` and `advisor` are borrowed: they belong to the job, which owns its worker too. Without
  // an advisor the worker keeps its batch. All ranks start from rank 0's weights. Throws InputError
  // for options out of range; an Error says that the ranks are lost.
  static Result<std::unique_ptr<Worker>> Start(WorkerGroup& group, const Trainable& trainable,
                                               const WorkerOptions& options,
                                               Advisor* advisor = nullptr);

  // One iteration. `stop` of any rank is seen by all after the same iteration.
  Status Iterate(bool stop = false);

  // True after the iteration that ended a window; report() is then new.
  bool window_ended() const { return window_ended_; }
  const Report& report() const { return report_; }
  bool stopping() const { return stopping_; }  // some rank asked to stop

  std::int64_t samples_seen() const { return sampler_.cursor(); }
  std::int64_t iterations() const { return iterations_; }
  std::int64_t windows() const { return windows_; }
  const std::vector<int>& batches() const { return batches_; }  // in force, one per rank
  const BatchBounds& bounds() const { return bounds_; }         // as lowered by out-of-memory
  int micro_batch() const { return micro_batch_; }
  double noise_scale() const { return noise_scale_.value(); }
  const Parameters& parameters() const { return parameters_; }

  // Averages the buffers over ranks, weighted by their batches.
  Status AverageBuffers();
  // All ranks call it; all get the same state.
  Result<WorkerState> Save();
  // Throws InputError when the state is of another model, optimizer or number of ranks.
  void Restore(const WorkerState& state);

 private:
  // Sums over the iterations of the window.
  struct Timing {
    int iterations = 0;
    double iteration_ms = 0, compute_ms = 0, wait_ms = 0, communication_ms = 0;
  };

  Worker(WorkerGroup& group, const Trainable& trainable, const WorkerOptions& options,
         Advisor* advisor);
  Status Meet();
  // Own gradients, repeated with a smaller micro batch after running out of memory, and the sums
  // over ranks.
  ExchangeTimes ExchangeGradients();
  void RunPasses(const std::vector<Sample>& samples);
  void FillTail(double squared_norm);
  void ShrinkMicroBatch(int failed);
  // The step and everything else that follows from the tail. An Error when the loss is not finite.
  Status TakeStep();
  void TakeBatches();
  void AddTiming(Clock::time_point start, const ExchangeTimes& times);
  Status EndWindow();

  WorkerGroup& group_;
  Trainable trainable_;
  WorkerOptions options_;
  Advisor* advisor_;
  Parameters parameters_;
  Optimizer optimizer_;
  GradientExchange exchange_;
  Sampler sampler_;
  NoiseScale noise_scale_;
  BatchBounds bounds_;
  int micro_batch_;
  int proven_batch_ = 0;   // the largest pass that did not run out of memory
  bool armed_ = false;     // backward sends the gradients of this iteration
  double latency_ms_ = 0;  // of a tail when nobody waits
  std::vector<int> batches_, start_batches_;
  bool stop_ = false, stopping_ = false, window_ended_ = false;
  std::int64_t iterations_ = 0, windows_ = 0;
  Clock::time_point started_;  // this iteration
  PassSums sums_;              // of this iteration, own
  Timing timing_;
  WindowStatistics statistics_;
  Report report_;
};

}  // namespace dynamix
