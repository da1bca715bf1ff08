// Calibration: the constants of a workload from recorded runs of it.
//
// Cost: sample_ms and the saturation curve from compute times against local batches, overlap from
// exchange times, on nodes as their scenarios say. Convergence: the constants of the quadratic
// model, so that replaying the recorded batches gives the recorded accuracies, losses and noise
// scales (head of calibration.cc). Pure and deterministic. Throws InputError when the traces do not
// allow it.
#pragma once

#include <string>
#include <vector>

#include "dynamix/simulator/scenario.h"
#include "dynamix/simulator/workload.h"

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
};

struct Trace {
  Scenario scenario;
  Workload workload;  // what was run, on this number of workers
  int workers = 0;
  int seed = 0;
  int window_iterations = 20;
  std::vector<TracedWindow> windows;

  double MeanIterationMs() const;
  double TimeToTarget() const;  // first window at the workload's target accuracy; missing: never
};

// The workload of the first trace, with fitted cost.
CostOptions FitCost(const std::vector<Trace>& traces);
// Its quadratic model, fitted; that of the workload is where the search starts.
QuadraticOptions FitConvergence(const std::vector<Trace>& traces);

struct Prediction {
  double iteration_ms = 0;
  double time_to_target_s = 0;  // missing: not reached in three times the traced windows
};

// The trace's batches again, in simulation, with these constants.
Prediction Replay(const Trace& trace, const CostOptions& cost, const QuadraticOptions& convergence);

}  // namespace dynamix
