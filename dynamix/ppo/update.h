// UpdateNetwork: the PPO update, one function that reads top to bottom: shuffle, loss, early stop,
// clip, step.
//
// Deterministic: same inputs and generator, same weights, bit for bit. A minibatch whose loss or
// gradient is not finite is skipped and counted, so no NaN ever reaches the weights.
#pragma once

#include <span>

#include "dynamix/core/rng.h"
#include "dynamix/ppo/adam.h"
#include "dynamix/ppo/loss.h"
#include "dynamix/ppo/ppo_options.h"

namespace dynamix {

// Means over the minibatches of an update, unless stated otherwise.
struct UpdateStatistics {
  double policy_loss = 0, value_loss = 0, entropy = 0;
  double kl = 0;                  // k3 estimate of how far the policy moved
  double clip_fraction = 0;       // share of rows whose ratio left 1 +- clip
  double gradient_norm = 0;       // before clipping
  double first_ratio_error = 0;   // largest |ratio - 1| of the first minibatch; 0, or it is a bug
  double explained_variance = 0;  // 1 - var(return - value) / var(return), before the update
  double mean_reward = 0;         // per active step, as given
  double reward_scale = 1;        // what rewards were multiplied by
  double learning_rate = 0, entropy_coefficient = 0;
  int rows = 0;  // active steps of active rows
  int optimizer_steps = 0;
  int skipped = 0;             // minibatches with a non-finite loss or gradient
  bool stopped_early = false;  // by target_kl
};

// Trains `network` on the samples named by `rows` (reordered). `learned_share` in [0, 1] drives the
// annealing.
UpdateStatistics UpdateNetwork(Network<float>& network, Adam<float>& adam, LossPass<float>& loss,
                               const Samples<float>& samples, std::span<int> rows,
                               const PpoOptions& options, double learned_share, Rng& rng);

}  // namespace dynamix
