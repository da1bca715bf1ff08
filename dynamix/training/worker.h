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
// In an elastic group a lost rank ends the iteration, not the job: survivors drop the iteration,
// form the next group, take the state of the one who is furthest, share out the global batch and go
// on (worker_recovery.cc). Nothing that outlives an iteration is touched before its sums are whole.
// Not thread-safe. Iterate fails with an Error when peers are lost and the group cannot go on
// without them, memory is too small for one sample, or the loss is not finite; the worker is then
// of no more use.
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
  double schedule_position = 0;  // of its clock, in samples
  // Per slot; 0 where no rank was.
  std::vector<double> batches, start_batches, highest, micro_batches;
  std::array<double, 4> noise_scale{};
  WindowStatistics::Numbers statistics{};  // of the window under way
  std::array<double, 5> timing{};          // of rank 0 in it: iterations, then sums of ms
  std::vector<float> parameters;
  std::vector<std::vector<float>> optimizer, buffers;
};

// Numbers of the worker's owner that belong to the state of the job, at most kCarried of them: a rank
// that is behind takes those of the one ahead.
inline constexpr std::size_t kCarried = 8;
struct Carried {
  std::function<std::vector<double>()> save;
  std::function<void(const std::vector<double>&)> restore;
};

class Worker {
 public:
  // `group` and `advisor` are borrowed: they belong to the job, which owns its worker too. Without
  // an advisor the worker keeps its batch. All ranks start from rank 0's weights; one that joins a
  // running job waits to be taken in, and has its state then. Throws InputError for options out of
  // range; an Error says that the ranks are lost.
  static Result<std::unique_ptr<Worker>> Start(WorkerGroup& group, const Trainable& trainable,
                                               const WorkerOptions& options,
                                               Advisor* advisor = nullptr);

  // One iteration. `stop` of any rank is seen by all after the same iteration. The first call of a rank
  // that joined at the end of a window does none: what the others do together there comes first.
  Status Iterate(bool stop = false);

  // True after the iteration that ended a window; report() is then new.
  bool window_ended() const { return phase_ >= kSubmitted; }
  const Report& report() const { return report_; }
  bool stopping() const { return stopping_; }  // some rank asked to stop

  std::int64_t samples_seen() const { return sampler_.cursor(); }
  // Part of the schedule that is over; above 1 after its end.
  double progress() const { return schedule_position_ / options_.optimizer.planned_samples; }
  std::int64_t iterations() const { return iterations_; }
  std::int64_t windows() const { return windows_; }
  const std::vector<int>& batches() const { return batches_; }  // in force, one per rank
  const BatchBounds& bounds() const { return bounds_; }         // as lowered by out-of-memory
  int micro_batch() const { return micro_batch_; }
  double noise_scale() const { return noise_scale_.value(); }
  const Parameters& parameters() const { return parameters_; }

  bool joined() const { return joined_; }  // came to a job that was running
  void Carry(const Carried& carried);

  // What all ranks do together after an iteration, in the order of these phases.
  enum Phase : int {
    kStepped,
    kSubmitted,
    kTimed,
    kEvaluated,
    kSaved,
    kEnded,
    kLastSaved,
    kPhases
  };
  // Runs the collectives of `work`; again, with those who are left, when a rank is lost in them; not
  // at all when the state this rank took from another one is past them.
  Status Together(Phase phase, const std::function<Status()>& work);

  // Averages the buffers over ranks, weighted by their batches.
  Status AverageBuffers();
  // All ranks call it; all get the same state.
  Result<WorkerState> Save();
  // With another number of ranks, these share the saved global batch. Throws InputError when the
  // state is of another model or optimizer.
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
  // The batches of the first iteration.
  Status Open();
  void MakeExchange();
  // One try at an iteration.
  Status TryIteration();
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

  // worker_state.cc: what this rank knows by itself, and back.
  WorkerState Snapshot() const;
  void RestoreShared(const WorkerState& state);
  // worker_recovery.cc
  bool CanRecover() const { return group_.elastic() && group_.lost(); }
  Status Recover(bool take_joiners = false);
  Status CatchUp();
  Status TakeStateOf(int source, bool behind);
  void ShareOut(const std::vector<double>& by_slot, const std::vector<double>& members);
  // Whole batches whose sum is `total`, as far as bounds allow. Of a weight of 0 nothing is known: it
  // counts as much as the others in the mean.
  static std::vector<int> Share(double total, const std::vector<double>& weights,
                                const std::vector<BatchBounds>& bounds);
  void KeepBuffers();
  void PutBackBuffers();
  std::int64_t position() const { return iterations_ * kPhases + phase_; }

  WorkerGroup& group_;
  Trainable trainable_;
  WorkerOptions options_;
  Advisor* advisor_;
  Parameters parameters_;
  Optimizer optimizer_;
  std::unique_ptr<GradientExchange> exchange_;  // another one for every group
  Sampler sampler_;
  NoiseScale noise_scale_;
  BatchBounds bounds_;
  int micro_batch_;
  int proven_batch_ = 0;   // the largest pass that did not run out of memory
  bool armed_ = false;     // backward sends the gradients of this iteration
  double latency_ms_ = 0;  // of a tail when nobody waits
  std::vector<int> batches_, start_batches_;
  std::vector<int> sharing_;  // slots of the ranks that `batches_` are of
  int start_batch_;           // own
  double job_start_ = 0;  // sum of the start batches of the first team: the job's, whoever is left
  bool stop_ = false, stopping_ = false;
  bool join_asked_ = false;     // some rank knows of one that wants to join
  bool advice_is_old_ = false;  // it was for another group
  bool joined_ = false;
  bool stale_ = false;  // others went on without this rank: whatever it has is of no use
  int phase_ = kStepped;
  std::int64_t iterations_ = 0, windows_ = 0;
  double schedule_position_ = 0;                  // of its clock, in samples
  std::int64_t returned_ = 0;                     // the iteration after which Iterate returned
  std::vector<std::vector<float>> kept_buffers_;  // as they were before this iteration
  Carried carried_;
  std::vector<double> carried_numbers_;  // taken before their owner was there
  Clock::time_point started_;            // this iteration
  PassSums sums_;                        // of this iteration, own
  Timing timing_;
  WindowStatistics statistics_;
  Report report_;
};

}  // namespace dynamix
