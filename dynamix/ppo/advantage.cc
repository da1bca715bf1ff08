#include "dynamix/ppo/advantage.h"

#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {
namespace {

// What a step sees of its row's future: after it come `reward` and then `discount` times the state
// of the next active step, of value `value` and advantage `advantage`.
struct Future {
  double reward = 0;
  double discount = 1;
  double value = 0;
  double advantage = 0;
};

}  // namespace

Advantages ComputeAdvantages(const AdvantageInput& in, double lambda) {
  const std::size_t size = static_cast<std::size_t>(in.steps) * in.rows;
  DYNAMIX_CHECK(in.rewards.size() == size && in.values.size() == size &&
                    in.discounts.size() == size && in.ends.size() == size &&
                    in.bootstraps.size() == size &&
                    (in.active.empty() || in.active.size() == size) &&
                    in.last_values.size() == static_cast<std::size_t>(in.rows),
                "every array is steps x rows");
  Advantages out{std::vector<double>(size), std::vector<double>(size)};
  for (int row = 0; row < in.rows; ++row) {
    Future future{.reward = 0, .discount = 1, .value = in.last_values[row], .advantage = 0};
    for (int step = in.steps - 1; step >= 0; --step) {
      const std::size_t i = static_cast<std::size_t>(step) * in.rows + row;
      if (in.ends[i] == StepEnd::kTerminated) future = {0, 0, 0, 0};
      if (in.ends[i] == StepEnd::kTruncated) future = {in.bootstraps[i], 0, 0, 0};
      const double reward = in.rewards[i] + in.discounts[i] * future.reward;
      const double discount = in.discounts[i] * future.discount;
      if (in.active.empty() || in.active[i] != 0) {
        const double delta = reward + discount * future.value - in.values[i];
        out.advantages[i] = delta + discount * lambda * future.advantage;
        out.returns[i] = out.advantages[i] + in.values[i];
        future = {0, 1, in.values[i], out.advantages[i]};
      } else {
        future.reward = reward;
        future.discount = discount;
      }
    }
  }
  return out;
}

}  // namespace dynamix
