#include "dynamix/ppo/ppo_options.h"

#include <algorithm>
#include <limits>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr double kTiny = std::numeric_limits<double>::min();
constexpr double kMost = 1e6;

double Between(double first, double last, double learned_share) {
  return first + (last - first) * std::clamp(learned_share, 0.0, 1.0);
}

}  // namespace

void PpoOptions::Validate() const {
  RequireInRange("steps", steps, 1, 100000);
  RequireInRange("epochs", epochs, 1, 100);
  RequireInRange("minibatches", minibatches, 1, 10000);
  RequireInRange("learning_rate", learning_rate, kTiny, 1.0);
  RequireInRange("final_learning_rate_share", final_learning_rate_share, 0.0, 1.0);
  RequireInRange("lambda", lambda, 0.0, 1.0);
  RequireInRange("clip", clip, kTiny, 1.0);
  RequireInRange("value_clip", value_clip, 0.0, kMost);
  RequireInRange("entropy_coefficient", entropy_coefficient, 0.0, kMost);
  RequireInRange("final_entropy_coefficient", final_entropy_coefficient, 0.0, kMost);
  RequireInRange("value_coefficient", value_coefficient, 0.0, kMost);
  RequireInRange("gradient_norm", gradient_norm, kTiny, kMost);
  RequireInRange("target_kl", target_kl, 0.0, kMost);
  RequireInRange("adam_epsilon", adam_epsilon, kTiny, 1.0);
}

double PpoOptions::LearningRate(double learned_share) const {
  return Between(learning_rate, learning_rate * final_learning_rate_share, learned_share);
}

double PpoOptions::EntropyCoefficient(double learned_share) const {
  return Between(entropy_coefficient, final_entropy_coefficient, learned_share);
}

}  // namespace dynamix
