// PpoOptions: every hyper-parameter of the learner, one head. Plain values; Validate throws
// InputError naming the field. Sources of the defaults: docs/ppo.md.
#pragma once

namespace dynamix {

struct PpoOptions {
  // Steps of every row between two updates, in [1, 100000]. Longer: better advantages, fewer
  // updates.
  int steps = 128;
  // Passes over a rollout, in [1, 100].
  int epochs = 4;
  // Parts a pass is cut into, one optimiser step each, in [1, 10000].
  int minibatches = 4;
  // Adam's step size at the start, in (0, 1].
  double learning_rate = 3e-4;
  // Lowers the learning rate linearly to this part of it as the learned share goes from 0 to 1, in
  // [0, 1]; 1: constant.
  double final_learning_rate_share = 0;
  // Weight of later temporal differences in an advantage, in [0, 1]; 0: one step, 1: the whole
  // return.
  double lambda = 0.95;
  // The ratio of new to old probability stops paying outside 1 +- clip, in (0, 1].
  double clip = 0.2;
  // The same for values, in units of the value network; 0: off (it rarely helps).
  double value_clip = 0;
  // Reward for undecidedness at the start, >= 0, and at the end of learning. Raise when a policy
  // settles too early.
  double entropy_coefficient = 0.01;
  double final_entropy_coefficient = 0.001;
  // Weight of the value loss, >= 0.
  double value_coefficient = 0.5;
  // Longest gradient of both towers together, > 0.
  double gradient_norm = 0.5;
  // The pass stops before a step when the policy moved by more than 1.5 x this (k3 estimate); 0:
  // never.
  double target_kl = 0.03;
  // Adam's epsilon, in (0, 1].
  double adam_epsilon = 1e-5;
  // Advantages of a minibatch get mean 0 and deviation 1.
  bool normalize_advantages = true;
  // Inputs get mean 0 and deviation 1, learned while acting. Off: only missing inputs become 0.
  bool normalize_inputs = true;
  // Rewards are divided by the deviation of the running discounted return.
  bool scale_rewards = true;
  // The value network learns returns of mean 0 and deviation 1.
  bool normalize_values = true;

  void Validate() const;
  double LearningRate(double learned_share) const;
  double EntropyCoefficient(double learned_share) const;
};

}  // namespace dynamix
