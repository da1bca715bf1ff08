// Calibration: the constants of a workload from recorded runs of it.
//
// Cost: sample_ms and the saturation curve from compute times against local batches, overlap from
// exchange times, on nodes as their scenarios say. Convergence: the constants of the quadratic
// model, so that replaying the recorded batches gives the recorded accuracies, losses and noise
// scales (head of calibration.cc). Pure and deterministic. Throws InputError when the traces do not
// allow it.
#pragma once

#include <vector>

#include "dynamix/simulator/trace.h"

namespace dynamix {

// What the runs' times say.
struct FittedCost {
  CostOptions cost;
  // How much longer an iteration takes than compute and the modelled exchange: real processes
  // wake up, real messages have fixed costs. A property of the cluster, not of the workload.
  double extra_ms = 0;
};

FittedCost FitCost(const std::vector<Trace>& traces);
// The quadratic model of the traces' workload, which is where the search starts. `target` is the
// accuracy or the loss near which the fit counts most.
QuadraticOptions FitConvergence(const std::vector<Trace>& traces, const TargetOptions& target);

// The trace's batches again, in simulation, with these constants; the last ones go on for up to
// three times the traced windows. Averaged over a few seeds.
Trace Replay(const Trace& trace, const FittedCost& cost, const QuadraticOptions& convergence);

}  // namespace dynamix
