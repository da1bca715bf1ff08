// Hindsight: the best that could have been done on a task, for tables. Uses the truth; nothing that
// decides may.
//
// Pure functions of a task; thread-safe. Results are what a search found: upper bounds of the best
// time, reported as such.
#pragma once

#include <vector>

#include "dynamix/simulator/task.h"

namespace dynamix {

struct Bound {
  double time_to_target_s = 0;  // the budget when not reached
  bool reached = false;
  double final_accuracy = 0;           // held-out, at the reference's time to target
  std::vector<double> global_batches;  // per window, up to the target
};

// The best constant global batch, with true balanced shares in every window: a grid of factor
// sqrt(2) over all legal global batches, then one refinement by 2^(1/4). Any engine; stops a batch
// as soon as it is slower than the best.
Bound BestConstantBatch(const Task& task);

// The best schedule of the global batch found with full knowledge of the model and of future
// events, with true balanced shares: see clairvoyant.cc. Meant for quadratics, where a run costs
// milliseconds.
Bound Clairvoyant(const Task& task);

}  // namespace dynamix
