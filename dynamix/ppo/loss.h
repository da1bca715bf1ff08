// The PPO loss of a minibatch and its derivative by every parameter, by hand (Schulman et al. 2017,
// arXiv 1707.06347).
//
//   l, o    log-probability of the action, now and when it was taken
//   r       ratio, exp(l - o)
//   a       advantage
//   v, u    value, now and when the action was taken
//   R       return
//   c, w    clip of the ratio and of the value
//
//   a'      = (a - mean a) / (deviation a + 1e-8)                over the minibatch, unbiased
//   policy  = mean max(-a' r, -a' clip(r, 1 - c, 1 + c))
//   value   = mean (v - R)^2 / 2                                 w = 0
//           = mean max((v - R)^2,
//                      (u + clip(v - u, -w, w) - R)^2) / 2       w > 0
//   entropy = mean -sum p log p, summed over the heads
//   total   = policy
//           - entropy_coefficient * entropy
//           + value_coefficient * value
//   k1      = mean -log r
//   k3      = mean (r - 1) - log r                               Schulman 2020
//
// (k1 and k3: "Approximating KL divergence".) The derivative by the logit z_j of one head, with g
// the derivative by l and h the derivative by the entropy H:
//
//   dz_j    = g (1[j = action] - p_j)
//           - h p_j (log p_j + H)
//
// An illegal action's logit is -1e8: probability and derivative 0. LossPass owns the buffers of one
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dynamix/ppo/network.h"

namespace dynamix {

inline constexpr double kIllegalLogit = -1e8;

// What the loss reads, one entry per sample (matrices row-major). A minibatch names some of them.
template <typename T>
struct Samples {
  std::span<const T> actor_rows;
  std::span<const T> critic_rows;       // empty: the value tower sees actor_rows
  std::span<const int> actions;         // samples x heads
  std::span<const std::uint8_t> masks;  // samples x logits, 0 = illegal; empty: all legal
  std::span<const T> log_probs;         // when the action was taken
  std::span<const T> advantages;
  std::span<const T> returns;  // in units of the value tower
  std::span<const T> values;   // when the action was taken; read with value_clip only
};

struct LossOptions {
  double clip = 0.2;
  double value_clip = 0;  // 0: off
  double entropy_coefficient = 0.01;
  double value_coefficient = 0.5;
  bool normalize_advantages = true;
};

struct LossParts {
  double total = 0, policy = 0, value = 0, entropy = 0;
  double k1 = 0, k3 = 0;
  double clip_fraction = 0;  // share of rows with |r - 1| > clip
  double ratio_error = 0;    // largest |r - 1|
};

template <typename T>
class LossPass {
 public:
  explicit LossPass(const Network<T>& network);

  // Writes the derivative of `total` over the samples named by `rows` to `gradient`.
  LossParts Compute(const Network<T>& network, const Samples<T>& samples, std::span<const int> rows,
                    const LossOptions& options, std::span<T> gradient);

  // Per-row results of the last chunk, for tests: log-probability of the action, value.
  const std::vector<T>& log_probs() const { return log_probs_; }
  const std::vector<T>& values() const { return values_; }

 private:
  void Chunk(const Network<T>& network, const Samples<T>& samples, std::span<const int> rows,
             const LossOptions& options, std::span<T> gradient, LossParts& sums);
  void PolicyBlock(const NetworkShape& shape, const Samples<T>& samples, std::span<const int> rows,
                   const LossOptions& options, int block, LossParts& sums);
  // The clipped surrogate of one block: its part of the sums, and g, the derivative by each
  // log-probability.
  void Surrogate(const Samples<T>& samples, std::span<const int> rows, const LossOptions& options,
                 const T* log_probs, T* g, LossParts& sums) const;
  void ValueRows(const Samples<T>& samples, std::span<const int> rows, const LossOptions& options,
                 const T* outputs, LossParts& sums);

  TowerPass<T> policy_, value_;
  std::vector<T> probabilities_;                   // of one block
  std::vector<T> log_probs_, entropies_, values_;  // of one chunk
  double advantage_mean_ = 0, advantage_scale_ = 1, row_weight_ = 0;
};

// Sets illegal logits of one block to kIllegalLogit and turns each head's logits into
// log-probabilities. Shared with acting, so that both compute the same bits. `masks` may be empty.
template <typename T>
void MaskedLogProbs(const NetworkShape& shape, std::span<const std::uint8_t> masks,
                    std::span<const int> rows, T* logits);

extern template class LossPass<float>;
extern template class LossPass<double>;

}  // namespace dynamix
