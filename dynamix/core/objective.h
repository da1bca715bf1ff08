// The objective: what a policy is learned for. Weights of the reward's parts and how the future
// counts. A policy file carries the objective it was learned with, and online learning goes on with
// it. Plain values; the defaults are those of the shipped policy.
#pragma once

#include <string>
#include <string_view>

#include "dynamix/core/reward.h"

namespace dynamix {

struct Objective {
  RewardWeights reward;
  // Discount per unit of time of the team's decisions, [0, 1). 0.997: a decision is judged by about
  // 333 units, the rest of the job.
  double team_discount = 0.997;
  // The same for local decisions. A share is corrected every round, so their effect is short.
  double local_discount = 0.5;
  double units_per_run = 100;  // units of time in a reference run, [1, 1e6]
  // What it costs, in reference runs, when the schedule ends before the target is reached, [0, 10].
  // The job is then over: without this the loss would come window by window, long after the
  // decisions that caused it, and dead jobs would fill the rollouts.
  double missed_cost = 2;

  // Throws InputError naming the field.
  void Validate() const;
};

// "quality=1 efficiency=0.1 ...": in policy files, printed, parsed.
std::string Format(const Objective& objective);
// Fields that the text does not name keep their defaults. Throws InputError naming the word.
Objective ParseObjective(std::string_view text);

}  // namespace dynamix
