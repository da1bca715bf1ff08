// A trace: what was recorded of a run, window by window, for calibration. Plain values.
#pragma once

#include <vector>

#include "dynamix/job/job_spec.h"

namespace dynamix {

// What was recorded of one window. Missing numbers are left out of the fit.
struct TracedWindow {
  std::vector<int> batches;  // 0: away
  int iterations = 0;
  double begin_s = 0, seconds = 0;  // on the job's clock
  double held_out_accuracy = 0, held_out_loss = 0;
  double training_loss = 0, noise_scale = 0;
  double communication_ms = 0;     // not hidden behind backward
  std::vector<double> compute_ms;  // per worker; missing: away or late

  double Samples() const;
};

struct Trace {
  JobSpec job;  // what was run
  std::vector<TracedWindow> windows;

  double MedianIterationMs() const;  // of windows: what else a machine does now and then is no cost
  // When the held-out accuracy (or loss, when the target is one), averaged over 5 % of the planned
  // samples around each moment, first reaches `target`; missing: never. One evaluation's luck does
  // not count as reaching.
  double TimeTo(const TargetOptions& target) const;
  // The best accuracy or loss for which TimeTo is not missing.
  double Best(bool by_loss) const;
};

// Runs of the same length that differ in their seed only become one: the mean accuracy and times,
// the geometric mean of losses and noise scales. Others stay as they are.
std::vector<Trace> AverageSeeds(const std::vector<Trace>& traces);

// The middle one; not of none.
double Median(std::vector<double> values);

}  // namespace dynamix
