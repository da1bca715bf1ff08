#include "dynamix/ppo/loss.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"
#include "dynamix/core/simd.h"
#include "dynamix/ppo/kernels.h"

namespace dynamix {
namespace {

// Blocks of 64 rows per chunk: the activations of both towers stay in the second-level cache.
constexpr int kChunkBlocks = 8;
constexpr int kChunkRows = kChunkBlocks * kBlockRows;

// One head of one block: entropy of each row, and dz = -p (g + h (log p + H)); the caller adds g at
// the action.
#define DYNAMIX_HEAD_GRADIENT(T)                                                                  \
  DYNAMIX_SIMD void HeadGradient(int actions, const T* log_p, const T* p, const T* g, const T* h, \
                                 T* entropy, T* dz) {                                             \
    for (int r = 0; r < kBlockRows; ++r) entropy[r] = 0;                                          \
    for (int a = 0; a < actions; ++a)                                                             \
      for (int r = 0; r < kBlockRows; ++r)                                                        \
        entropy[r] -= p[a * kBlockRows + r] * log_p[a * kBlockRows + r];                          \
    for (int a = 0; a < actions; ++a)                                                             \
      for (int r = 0; r < kBlockRows; ++r) {                                                      \
        const int i = a * kBlockRows + r;                                                         \
        dz[i] = -p[i] * (g[r] + h[r] * (log_p[i] + entropy[r]));                                  \
      }                                                                                           \
  }
DYNAMIX_HEAD_GRADIENT(float)
DYNAMIX_HEAD_GRADIENT(double)
#undef DYNAMIX_HEAD_GRADIENT

// Mean and 1 / (deviation + 1e-8) of the advantages of a minibatch.
template <typename T>
void AdvantageMoments(const Samples<T>& samples, std::span<const int> rows, double& mean,
                      double& scale) {
  mean = 0, scale = 1;
  if (rows.size() < 2) return;
  const auto n = static_cast<double>(rows.size());
  for (const int row : rows) mean += samples.advantages[row];
  mean /= n;
  double squares = 0;
  for (const int row : rows) {
    const double d = samples.advantages[row] - mean;
    squares += d * d;
  }
  scale = 1 / (std::sqrt(squares / (n - 1)) + 1e-8);
}

}  // namespace

template <typename T>
void MaskedLogProbs(const NetworkShape& shape, std::span<const std::uint8_t> masks,
                    std::span<const int> rows, T* logits) {
  const int width = shape.logit_count();
  if (!masks.empty()) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::uint8_t* legal = &masks[static_cast<std::size_t>(rows[r]) * width];
      for (int a = 0; a < width; ++a)
        if (!legal[a]) logits[a * kBlockRows + r] = T(kIllegalLogit);
    }
  }
  for (const int actions : shape.heads) {
    LogSoftmax(logits, actions);
    logits += static_cast<std::ptrdiff_t>(actions) * kBlockRows;
  }
}

template <typename T>
LossPass<T>::LossPass(const Network<T>& network)
    : policy_(network.policy(), kChunkBlocks),
      value_(network.value(), kChunkBlocks),
      probabilities_(static_cast<std::size_t>(network.shape().logit_count()) * kBlockRows),
      log_probs_(kChunkRows),
      entropies_(kChunkRows),
      values_(kChunkRows) {}

template <typename T>
LossParts LossPass<T>::Compute(const Network<T>& network, const Samples<T>& samples,
                               std::span<const int> rows, const LossOptions& options,
                               std::span<T> gradient) {
  DYNAMIX_CHECK(!rows.empty(), "a minibatch has rows");
  std::fill(gradient.begin(), gradient.end(), T(0));
  advantage_mean_ = 0, advantage_scale_ = 1;
  if (options.normalize_advantages)
    AdvantageMoments(samples, rows, advantage_mean_, advantage_scale_);
  row_weight_ = 1.0 / static_cast<double>(rows.size());
  LossParts parts;
  for (std::size_t begin = 0; begin < rows.size(); begin += kChunkRows)
    Chunk(network, samples,
          rows.subspan(begin, std::min<std::size_t>(kChunkRows, rows.size() - begin)), options,
          gradient, parts);
  for (double* sum :
       {&parts.policy, &parts.value, &parts.entropy, &parts.k1, &parts.k3, &parts.clip_fraction})
    *sum *= row_weight_;
  parts.total = parts.policy - options.entropy_coefficient * parts.entropy +
                options.value_coefficient * parts.value;
  return parts;
}

template <typename T>
void LossPass<T>::Chunk(const Network<T>& network, const Samples<T>& samples,
                        std::span<const int> rows, const LossOptions& options,
                        std::span<T> gradient, LossParts& sums) {
  const NetworkShape& shape = network.shape();
  const int blocks = BlocksFor(static_cast<int>(rows.size()));
  GatherRows(samples.actor_rows, shape.actor_inputs, rows, policy_.input());
  if (samples.critic_rows.empty()) {
    std::copy_n(policy_.input(), static_cast<std::size_t>(blocks) * kBlockRows * shape.actor_inputs,
                value_.input());
  } else {
    GatherRows(samples.critic_rows, shape.critic_width(), rows, value_.input());
  }
  policy_.Forward(network.parameters(), blocks);
  for (int block = 0; block < blocks; ++block) {
    const std::size_t first = static_cast<std::size_t>(block) * kBlockRows;
    PolicyBlock(shape, samples,
                rows.subspan(first, std::min<std::size_t>(kBlockRows, rows.size() - first)),
                options, block, sums);
  }
  policy_.Backward(network.parameters(), blocks, gradient);
  ValueRows(samples, rows, options, value_.Forward(network.parameters(), blocks), sums);
  value_.Backward(network.parameters(), blocks, gradient);
}

template <typename T>
void LossPass<T>::PolicyBlock(const NetworkShape& shape, const Samples<T>& samples,
                              std::span<const int> rows, const LossOptions& options, int block,
                              LossParts& sums) {
  const int heads = static_cast<int>(shape.heads.size());
  const std::ptrdiff_t offset =
      static_cast<std::ptrdiff_t>(block) * shape.logit_count() * kBlockRows;
  T* log_p = policy_.output() + offset;
  T* dz = policy_.output_gradient() + offset;
  T* chosen = &log_probs_[static_cast<std::size_t>(block) * kBlockRows];
  T* entropy = &entropies_[static_cast<std::size_t>(block) * kBlockRows];
  MaskedLogProbs(shape, samples.masks, rows, log_p);
  Exp(log_p, probabilities_.data(), probabilities_.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    chosen[r] = 0;
    for (int head = 0, first = 0; head < heads; first += shape.heads[head++])
      chosen[r] += log_p[(first + samples.actions[rows[r] * heads + head]) * kBlockRows + r];
  }
  T g[kBlockRows] = {}, h[kBlockRows] = {};
  std::fill_n(h, rows.size(), T(-options.entropy_coefficient * row_weight_));
  Surrogate(samples, rows, options, chosen, g, sums);

  std::fill_n(entropy, kBlockRows, T(0));
  for (int head = 0, first = 0; head < heads; first += shape.heads[head++]) {
    T part[kBlockRows];
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(first) * kBlockRows;
    HeadGradient(shape.heads[head], log_p + at, probabilities_.data() + at, g, h, part, dz + at);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      dz[at + samples.actions[rows[r] * heads + head] * kBlockRows + r] += g[r];
      entropy[r] += part[r];
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) sums.entropy += entropy[r];
}

template <typename T>
void LossPass<T>::Surrogate(const Samples<T>& samples, std::span<const int> rows,
                            const LossOptions& options, const T* log_probs, T* g,
                            LossParts& sums) const {
  T log_ratio[kBlockRows] = {}, ratio[kBlockRows];
  for (std::size_t r = 0; r < rows.size(); ++r)
    log_ratio[r] = log_probs[r] - samples.log_probs[rows[r]];
  Exp(log_ratio, ratio, kBlockRows);
  const T low = T(1 - options.clip), high = T(1 + options.clip);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const T a = T((samples.advantages[rows[r]] - advantage_mean_) * advantage_scale_);
    const T plain = -a * ratio[r], clipped = -a * std::clamp(ratio[r], low, high);
    sums.policy += std::max(plain, clipped);
    // Where the clipped term is the larger one it is constant in the parameters.
    g[r] = plain >= clipped ? plain * T(row_weight_) : T(0);
    sums.k1 -= log_ratio[r];
    sums.k3 += (ratio[r] - 1) - log_ratio[r];
    const double error = std::abs(ratio[r] - 1);
    sums.clip_fraction += error > options.clip ? 1 : 0;
    sums.ratio_error = std::max(sums.ratio_error, error);
  }
}

template <typename T>
void LossPass<T>::ValueRows(const Samples<T>& samples, std::span<const int> rows,
                            const LossOptions& options, const T* outputs, LossParts& sums) {
  T* dv = value_.output_gradient();
  const std::size_t padded =
      static_cast<std::size_t>(BlocksFor(static_cast<int>(rows.size()))) * kBlockRows;
  const T weight = T(options.value_coefficient * row_weight_);
  const T width = T(options.value_clip);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    values_[r] = outputs[r];
    const T error = outputs[r] - samples.returns[rows[r]];
    T loss = error * error, derivative = error;
    if (width > 0) {
      const T old = samples.values[rows[r]], moved = outputs[r] - old;
      const T near = old + std::clamp(moved, -width, width) - samples.returns[rows[r]];
      if (std::abs(moved) > width && near * near > loss) {
        loss = near * near;
        derivative = 0;  // the clipped value does not move with the parameters
      }
    }
    sums.value += 0.5 * loss;
    dv[r] = weight * derivative;
  }
  std::fill(dv + rows.size(), dv + padded, T(0));
}

template class LossPass<float>;
template class LossPass<double>;
template void MaskedLogProbs<float>(const NetworkShape&, std::span<const std::uint8_t>,
                                    std::span<const int>, float*);
template void MaskedLogProbs<double>(const NetworkShape&, std::span<const std::uint8_t>,
                                     std::span<const int>, double*);

}  // namespace dynamix
