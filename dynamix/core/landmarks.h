// Landmarks: global batches that are worth going to, found from what a job has measured so far.
//
//   base       the batch that the base learning rate belongs to; the start when none is named
//   goodput    most throughput x efficiency (Pollux; formula heads policies/goodput.cc)
//   soonest    least time to go under the job's learning-rate rule and schedule (time_to_go.h)
// the last two over all legal batches. They move only when another batch promises 2 % more, so that
// noise of measurement does not move them. One LandmarkFinder per job; never fails.
#pragma once

#include "dynamix/core/noise_scale.h"
#include "dynamix/core/time_line.h"
#include "dynamix/core/time_to_go.h"

namespace dynamix {

struct Landmarks {
  double base = 0;            // 0: nobody is active
  double goodput = kMissing;  // until time and noise were measured
  double soonest = 0;         // the base batch until then
  // Time of an iteration at twice and at half the present global batch over that at the present one.
  double time_at_twice = kMissing, time_at_half = kMissing;
};

class LandmarkFinder {
 public:
  // Takes in a round's reports, and finds.
  Landmarks Find(const Round& round);
  void VisitMemory(Memory& memory) { memory(noise_, time_, goodput_, soonest_); }

 private:
  NoiseMemory noise_{0.3};
  TimeLine time_;
  double goodput_ = kMissing, soonest_ = kMissing;  // found last
};

}  // namespace dynamix
