// A small policy of random weights, for tests and fuzzing. Test code only.
#pragma once

#include "dynamix/core/features.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {

inline ActorCritic SmallModel(int inputs, std::vector<int> hidden, std::uint64_t seed) {
  ActorCritic model({.actor_inputs = inputs,
                     .critic_inputs = 0,
                     .hidden = std::move(hidden),
                     .heads = {kActionCount}});
  Rng rng(seed);
  model.network.Initialize(rng);
  for (float& weight : model.network.parameters())
    weight = weight * 2 + static_cast<float>(0.1 * rng.Normal());
  for (RunningMoments& column : model.actor_inputs.columns())
    column = {.count = 100, .mean = rng.Normal(), .variance = 0.5 + rng.Uniform()};
  const int off[] = {1};
  model.actor_inputs.SwitchOff(off);
  return model;
}

inline PolicyModel SmallPolicy(std::vector<int> hidden, std::uint64_t seed) {
  PolicyModel model;
  model.local = SmallModel(LocalWidth(), hidden, seed);
  model.team = SmallModel(TeamWidth(), hidden, seed + 1);
  model.training = {{"seed", "7"}, {"note", "a \"quoted\" note"}};
  return model;
}

}  // namespace dynamix
