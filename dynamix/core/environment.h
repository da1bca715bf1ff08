// Environment: a job that can be stepped, window by window. Implemented by the simulated cluster
// and by the virtual cluster (real SGD, modelled clock); every implementation passes
// environment_conformance.h.
//
// Not thread-safe; one thread per environment. Deterministic given its seed and the sizes it is
// given.
#pragma once

#include <vector>

#include "dynamix/core/round.h"

namespace dynamix {

// The truth after the last window. For rewards, targets and tables; states never see it.
struct Truth {
  double seconds = 0;         // since the start of the job
  double samples = 0;         // seen since then
  double progress = 0;        // part of the schedule that is over; above 1 after its end
  double window_seconds = 0;  // length of the last window
  double held_out_loss = 0;
  double held_out_accuracy = 0;
  bool reached = false;      // the target was reached, now or earlier
  bool out_of_time = false;  // the job's time or sample budget is spent
  // The job's whole time budget, which a missed target is booked with; infinite: none.
  double budget_seconds = 0;
  // The schedule is over and has taken the learning rate down: little will change any more.
  bool schedule_ended = false;
};

class Environment {
 public:
  virtual ~Environment() = default;
  // What the job says about itself before its first window: settings, bounds, start batches. Nobody
  // has reported.
  virtual Round Opening() const = 0;
  // Starts the job anew and runs its first window at these local batches.
  virtual Round Start(const std::vector<int>& sizes) = 0;
  // The same at the start batches.
  Round Reset() { return Start(Batches(Opening())); }
  // Runs one window at these local batches (one per entry of the round; inactive workers' are
  // ignored).
  virtual Round Step(const std::vector<int>& sizes) = 0;
  virtual const Truth& truth() const = 0;
};

}  // namespace dynamix
