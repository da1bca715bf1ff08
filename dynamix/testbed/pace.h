// Pace: how long an iteration's compute takes on a node of the scenario, so that a rank on a faster
// machine can sleep the rest. Overhead, speed, saturation, jitter and slowdown events, as the
// cluster model has them.
//
// One thread per object; deterministic from its seed, but for the clock it is told.
#pragma once

#include "dynamix/core/rng.h"
#include "dynamix/job/job_spec.h"
#include "dynamix/simulator/cluster.h"

namespace dynamix {

class Pace {
 public:
  Pace(const JobSpec& job, int rank);

  // Of this rank's next iteration, which begins at `seconds` of the job's clock; the clock never
  // goes back.
  double NextMs(int batch, double seconds);
  // Of any rank at the present moment, jitter left out.
  double ExpectedMs(int rank, int batch) const { return cluster_.ComputeMs(rank, batch); }

 private:
  Cluster cluster_;
  int rank_;
  double jitter_;
  Rng rng_;
};

}  // namespace dynamix
