// The reward: what a second bought.
//
// A window is not a unit of time, so every part is a rate, per second of the window. (A cost per
// window would drive a policy to the smallest batch, because small batches make windows short.)
//
//   quality        = (tau(L') - tau(L)) / dt - 1               clipped to [-5, 5]
//   efficiency     = -mean over workers of wait / iteration    [-1, 0]
//   stability      = -mean over workers of |log2(b' / b)|      each at most 1, so [-1, 0]
//
//   team reward    = w_quality    * quality
//                  + w_efficiency * efficiency
//                  + w_stability  * stability
//
//   local reward_i = w_straggler  * blame_i
//                  + w_stability  * stability_i
//                  + w_team       * team reward
//
//   blame_i        = -min(1, lead_i / iteration)
//                  - wait_i / iteration / number of workers
//   lead_i         = max(0, compute_i - compute of the second slowest worker)
//   stability_i    = -min(1, |log2(b_i' / b_i)|)
//
// where
//
//   tau(L)    seconds after which the reference run first reached loss L: simulator/reference.h,
//             and arbitrator/progress.h for a live job
//   L, L'     loss at the start and at the end of the window: held-out; of a live job training
//   dt        seconds of the window
//   b, b'     local batch in the window before and in this one
//
// So quality is seconds of reference progress per second, less one (a speed-up), and the lead of
// the slowest worker is how much sooner the iteration would end without it.
//
// A transition lasts `seconds`; the learner multiplies the rate by seconds / time scale and
// discounts by gamma^(seconds / time scale), so that the return is an integral over time whatever
// the windows do.
#pragma once

#include <vector>

#include "dynamix/core/round.h"

namespace dynamix {

// Each in [0, 10] (objective.h).
struct RewardWeights {
  double quality = 1.0;
  double efficiency = 0.1;
  double stability = 0.1;
  double straggler = 1.0;  // local actions: the wait this worker alone causes
  double team = 0.0;       // local actions: part of the team reward
};

struct TeamReward {
  double quality = 0, efficiency = 0, stability = 0;
  double total = 0;
};

struct Rewards {
  TeamReward team;
  std::vector<double> local;  // one per worker, 0 for inactive or late ones
};

// `progress_seconds` = tau(L') - tau(L) of the window that `round` reports; `previous` are the
// batches in force in the window before it.
Rewards ComputeRewards(const Round& round, const std::vector<int>& previous,
                       double progress_seconds, const RewardWeights& weights);

}  // namespace dynamix
