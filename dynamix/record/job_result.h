// What came of one policy on one job: plain values, the figures of summary.json.
#pragma once

#include <string>
#include <vector>

namespace dynamix {

// The truth at one moment of a run.
struct CurvePoint {
  double seconds = 0, samples = 0;
  double loss = 0, accuracy = 0;  // held-out
};

// One policy on one job.
struct JobResult {
  std::string scenario, workload, policy;
  int workers = 0;
  int seed = 0;
  double time_to_target_s = 0;  // the whole time budget when not reached
  bool reached = false;
  double samples = 0;  // seen when the target was reached, or at the end
  // Held-out, at the time all policies of the job are compared at.
  double final_accuracy = 0, final_loss = 0;
  double mean_wait_share = 0;  // worker time lost to waiting, [0, 1]
  double windows = 0;
  double first_global_batch = 0, last_global_batch = 0;
  std::string record_loss;        // what its folder misses, a sentence; empty: nothing
  std::vector<CurvePoint> curve;  // one point per change of the truth, and the last moment
};

}  // namespace dynamix
