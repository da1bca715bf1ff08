#include "dynamix/ppo/actor_critic.h"

#include <algorithm>
#include <cmath>

#include "dynamix/ppo/kernels.h"
#include "dynamix/ppo/loss.h"

namespace dynamix {
namespace {

constexpr int kEvaluatorBlocks = 4;
constexpr std::size_t kEvaluatorRows = kEvaluatorBlocks * kBlockRows;

// Runs `use(chunk of rows, offset)` over chunks that fit an evaluator.
template <typename Use>
void ForChunks(std::span<const int> rows, const Use& use) {
  for (std::size_t begin = 0; begin < rows.size(); begin += kEvaluatorRows)
    use(rows.subspan(begin, std::min(kEvaluatorRows, rows.size() - begin)), begin);
}

// Index of the action whose share of [0, 1) holds `u`; the last legal one when rounding leaves a
// rest.
int Draw(const float* probabilities, int actions, double u) {
  double sum = 0;
  int last = 0;
  for (int a = 0; a < actions; ++a) {
    const double p = probabilities[a * kBlockRows];
    if (!(p > 0)) continue;
    last = a;
    sum += p;
    if (u < sum) return a;
  }
  return last;
}

int Largest(const float* log_probs, int actions) {
  int best = 0;
  for (int a = 1; a < actions; ++a)
    if (log_probs[a * kBlockRows] > log_probs[best * kBlockRows]) best = a;
  return best;
}

}  // namespace

void ActorCritic::Rescale(const RunningMoments& new_returns) {
  const Layer& last = network.value().back();
  const double old_deviation = returns.Deviation(), old_mean = returns.mean;
  const double scale = old_deviation / new_returns.Deviation();
  const std::span<float> p = network.parameters();
  for (int i = 0; i < last.in; ++i)
    p[last.weights + i] = static_cast<float>(p[last.weights + i] * scale);
  p[last.bias] = static_cast<float>(p[last.bias] * scale +
                                    (old_mean - new_returns.mean) / new_returns.Deviation());
  returns = new_returns;
}

Evaluator::Evaluator(const NetworkShape& shape)
    : policy_(Network<float>(shape).policy(), kEvaluatorBlocks),
      value_(Network<float>(shape).value(), kEvaluatorBlocks),
      probabilities_(static_cast<std::size_t>(shape.logit_count()) * kBlockRows) {}

void Evaluator::Choose(const Network<float>& network, std::span<const float> inputs,
                       std::span<const int> rows, std::span<const std::uint8_t> masks, Choice how,
                       Rng& rng, Choices& out) {
  const NetworkShape& shape = network.shape();
  out.actions.clear();
  out.log_probs.clear();
  out.probabilities.clear();
  out.finite = true;
  ForChunks(rows, [&](std::span<const int> chunk, std::size_t) {
    GatherRows(inputs, shape.actor_inputs, chunk, policy_.input());
    float* logits =
        policy_.Forward(network.parameters(), BlocksFor(static_cast<int>(chunk.size())));
    for (std::size_t first = 0; first < chunk.size(); first += kBlockRows) {
      ChooseBlock(shape,
                  chunk.subspan(first, std::min<std::size_t>(kBlockRows, chunk.size() - first)),
                  masks, how, rng, logits, out);
      logits += static_cast<std::ptrdiff_t>(shape.logit_count()) * kBlockRows;
    }
  });
}

void Evaluator::ChooseBlock(const NetworkShape& shape, std::span<const int> rows,
                            std::span<const std::uint8_t> masks, Choice how, Rng& rng,
                            float* logits, Choices& out) {
  const int width = shape.logit_count();
  for (int a = 0; a < width; ++a)
    for (std::size_t r = 0; r < rows.size(); ++r)
      out.finite = out.finite && std::isfinite(logits[a * kBlockRows + r]);
  MaskedLogProbs(shape, masks, rows, logits);
  Exp(logits, probabilities_.data(), probabilities_.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    float log_prob = 0;
    int first = 0;
    for (const int actions : shape.heads) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(first) * kBlockRows + r;
      const int action = how == Choice::kSample
                             ? Draw(probabilities_.data() + at, actions, rng.Uniform())
                             : Largest(logits + at, actions);
      out.actions.push_back(action);
      log_prob += logits[at + action * kBlockRows];
      first += actions;
    }
    out.log_probs.push_back(log_prob);
    for (int a = 0; a < width; ++a) out.probabilities.push_back(probabilities_[a * kBlockRows + r]);
  }
}

void Evaluator::Values(const Network<float>& network, std::span<const float> inputs,
                       std::span<const int> rows, std::span<double> out) {
  ForChunks(rows, [&](std::span<const int> chunk, std::size_t begin) {
    GatherRows(inputs, network.shape().critic_width(), chunk, value_.input());
    const float* values =
        value_.Forward(network.parameters(), BlocksFor(static_cast<int>(chunk.size())));
    for (std::size_t r = 0; r < chunk.size(); ++r) out[begin + r] = values[r];
  });
}

void Evaluator::Logits(const Network<float>& network, std::span<const float> inputs,
                       std::span<const int> rows, std::span<float> out) {
  const std::size_t width = network.shape().logit_count();
  ForChunks(rows, [&](std::span<const int> chunk, std::size_t begin) {
    GatherRows(inputs, network.shape().actor_inputs, chunk, policy_.input());
    const float* logits =
        policy_.Forward(network.parameters(), BlocksFor(static_cast<int>(chunk.size())));
    for (std::size_t r = 0; r < chunk.size(); ++r)
      for (std::size_t a = 0; a < width; ++a)
        out[(begin + r) * width + a] =
            logits[(r / kBlockRows * width + a) * kBlockRows + r % kBlockRows];
  });
}

}  // namespace dynamix
