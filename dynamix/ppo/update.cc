#include "dynamix/ppo/update.h"

#include <cmath>
#include <utility>
#include <vector>

namespace dynamix {
namespace {

void Shuffle(std::span<int> rows, Rng& rng) {
  for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[rng.Below(i)]);
}

void Add(const LossParts& parts, double gradient_norm, UpdateStatistics& sums) {
  sums.policy_loss += parts.policy;
  sums.value_loss += parts.value;
  sums.entropy += parts.entropy;
  sums.kl += parts.k3;
  sums.clip_fraction += parts.clip_fraction;
  sums.gradient_norm += gradient_norm;
}

void Average(int count, UpdateStatistics& sums) {
  if (count == 0) return;
  for (double* sum : {&sums.policy_loss, &sums.value_loss, &sums.entropy, &sums.kl,
                      &sums.clip_fraction, &sums.gradient_norm})
    *sum /= count;
}

}  // namespace

UpdateStatistics UpdateNetwork(Network<float>& network, Adam<float>& adam, LossPass<float>& loss,
                               const Samples<float>& samples, std::span<int> rows,
                               const PpoOptions& options, double learned_share, Rng& rng) {
  UpdateStatistics statistics;
  statistics.rows = static_cast<int>(rows.size());
  statistics.learning_rate = options.LearningRate(learned_share);
  statistics.entropy_coefficient = options.EntropyCoefficient(learned_share);
  const LossOptions loss_options{.clip = options.clip,
                                 .value_clip = options.value_clip,
                                 .entropy_coefficient = statistics.entropy_coefficient,
                                 .value_coefficient = options.value_coefficient,
                                 .normalize_advantages = options.normalize_advantages};
  std::vector<float> gradient(network.parameters().size());
  const std::size_t parts = options.minibatches;
  int evaluated = 0;
  for (int epoch = 0; epoch < options.epochs && !statistics.stopped_early; ++epoch) {
    Shuffle(rows, rng);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t begin = rows.size() * part / parts, end = rows.size() * (part + 1) / parts;
      if (begin == end) continue;
      const LossParts here =
          loss.Compute(network, samples, rows.subspan(begin, end - begin), loss_options, gradient);
      if (evaluated == 0) statistics.first_ratio_error = here.ratio_error;
      if (options.target_kl > 0 && here.k3 > 1.5 * options.target_kl) {
        statistics.stopped_early = true;
        break;
      }
      const double norm = ClipGradient(gradient, options.gradient_norm);
      if (!std::isfinite(norm) || !std::isfinite(here.total)) {
        ++statistics.skipped;
        continue;
      }
      Add(here, norm, statistics);
      ++evaluated;
      adam.Step(network.parameters(), gradient, statistics.learning_rate, options.adam_epsilon);
    }
  }
  statistics.optimizer_steps = evaluated;
  Average(evaluated, statistics);
  return statistics;
}

}  // namespace dynamix
