// ActorCritic: a network with everything needed to use it: input normalisers and the scale of its
// values. One per head (local, team); this is what a policy file stores. Evaluator: the buffers to
// run one.
//
// An ActorCritic is a value. An Evaluator belongs to one thread. Rows are row-major float32; NaN is
// missing. Nothing fails: a non-finite logit is reported, not thrown.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/ppo/network.h"
#include "dynamix/ppo/normalizer.h"

namespace dynamix {

struct ActorCritic {
  explicit ActorCritic(const NetworkShape& shape)
      : network(shape), actor_inputs(shape.actor_inputs), critic_inputs(shape.critic_inputs) {}

  Network<float> network;
  Normalizer actor_inputs;
  Normalizer critic_inputs;  // width 0 when the value tower sees the actor's row
  // Mean and variance of the returns: the value tower's output times Deviation() plus mean is a
  // return.
  RunningMoments returns{.count = 1e-4, .mean = 0, .variance = 1 - 1e-8};

  // Changes `returns` and the last value layer together, so that every predicted return stays what
  // it was (PopArt; van Hasselt et al. 2016, arXiv 1602.07714).
  void Rescale(const RunningMoments& new_returns);
};

enum class Choice { kSample, kGreedy };

// Entry i belongs to the i-th row that was named.
struct Choices {
  std::vector<int> actions;          // rows x heads
  std::vector<float> log_probs;      // of the actions, summed over heads
  std::vector<float> probabilities;  // of all actions, rows x logit_count
  bool finite = true;  // false: some logit was not a number, and nothing here may be used
};

class Evaluator {
 public:
  explicit Evaluator(const NetworkShape& shape);

  // Actions for the rows of the normalised matrix `inputs` named by `rows`. `masks` has one row of
  // logit_count flags per row of `inputs` (0 = illegal), or is empty. One Uniform() per row and
  // head when sampling.
  void Choose(const Network<float>& network, std::span<const float> inputs,
              std::span<const int> rows, std::span<const std::uint8_t> masks, Choice how, Rng& rng,
              Choices& out);
  // The value tower's outputs for those rows of a normalised critic matrix.
  void Values(const Network<float>& network, std::span<const float> inputs,
              std::span<const int> rows, std::span<double> out);
  // Logits before masking, rows x logit_count.
  void Logits(const Network<float>& network, std::span<const float> inputs,
              std::span<const int> rows, std::span<float> out);

 private:
  void ChooseBlock(const NetworkShape& shape, std::span<const int> rows,
                   std::span<const std::uint8_t> masks, Choice how, Rng& rng, float* logits,
                   Choices& out);

  TowerPass<float> policy_, value_;
  std::vector<float> probabilities_;
};

}  // namespace dynamix
