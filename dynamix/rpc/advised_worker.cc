#include "dynamix/rpc/advised_worker.h"

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

const AdvisedWorkerOptions& Validated(const AdvisedWorkerOptions& options) {
  options.bounds.Validate("bounds");
  RequireInRange("start_batch", options.start_batch, options.bounds.min, options.bounds.max);
  RequireInRange("window_iterations", options.window_iterations, 1, 1000000);
  return options;
}

}  // namespace

void AdvisedWorker::Mean::Add(double value) {
  if (IsMissing(value)) return;
  sum += value;
  ++count;
}

AdvisedWorker::AdvisedWorker(const AdvisedWorkerOptions& options)
    : options_(Validated(options)), advisor_(options.advisor), batch_(options.start_batch) {}

int AdvisedWorker::EndIteration(const IterationStats& stats) {
  ++window_.iterations;
  window_.iteration_ms.Add(stats.iteration_ms);
  window_.compute_ms.Add(stats.compute_ms);
  window_.wait_ms.Add(stats.wait_ms);
  window_.communication_ms.Add(stats.communication_ms);
  window_.loss.Add(stats.loss);
  window_.accuracy.Add(stats.accuracy);
  window_.gradient_norm.Add(stats.gradient_norm);
  if (window_.iterations == options_.window_iterations) {
    Submit(stats);
    window_ = {};
    return batch_;
  }
  const Answer answer = advisor_.Poll();
  if (!answer.batch) return batch_;
  const int next = ClampBatch(*answer.batch, batch_, options_.bounds);
  if (next != batch_) window_ = {};  // a window's numbers belong to one batch
  return batch_ = next;
}

void AdvisedWorker::Submit(const IterationStats& last) {
  RoundEntry entry{.bounds = options_.bounds, .start_batch = options_.start_batch, .batch = batch_};
  Report& report = entry.report.emplace();
  report.rank = options_.advisor.rank;
  report.window = windows_;
  report.iterations = window_.iterations;
  report.local_batch = batch_;
  report.iteration_ms = window_.iteration_ms.value();
  report.compute_ms = window_.compute_ms.value();
  report.wait_ms = window_.wait_ms.value();
  report.communication_ms = window_.communication_ms.value();
  report.training.loss = window_.loss.value();
  report.training.accuracy = window_.accuracy.value();
  report.training.gradient_norm = window_.gradient_norm.value();
  report.training.noise_scale = last.noise_scale;
  report.training.learning_rate = last.learning_rate;
  report.training.progress = last.progress;
  (void)advisor_.Submit(windows_++, entry);  // never fails
}

}  // namespace dynamix
