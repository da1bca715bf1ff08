// ReferenceLearningRate. Measured on random miniatures at global batch 128 (momentum 0 and 0.9,
// Adam): the rate with the lowest held-out loss after 150,000 samples is 0.3 (1 - momentum) for SGD
// and 0.004 for Adam in the median, within a factor of 4 in 80 % of the tasks; training diverges
// from about 15 times that. Momentum multiplies a step by 1 / (1 - momentum) in the long run; the
// curvature of the first layer grows with the inputs' square.
#include "dynamix/simulator/miniature_options.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr std::array<std::string_view, kMiniatureFamilyCount> kFamilyNames = {"fashion", "teacher",
                                                                              "prototypes"};

constexpr double kSgdRate = 0.3;
constexpr double kAdamRate = 0.004;

constexpr std::array<std::string_view, 2> kActivationNames = {"relu", "tanh"};

template <typename Enum>
void RequireEnum(std::string_view field, Enum value, int count) {
  RequireInRange(field, static_cast<int>(value), 0, count - 1);
}

template <typename T>
const T& Choose(Rng& rng, const std::vector<T>& choices) {
  DYNAMIX_CHECK(!choices.empty(), "something to choose from");
  return choices[rng.Below(choices.size())];
}

double Uniform(Rng& rng, Range range) { return rng.Uniform(range.low, range.high); }
double LogUniform(Rng& rng, Range range) { return rng.LogUniform(range.low, range.high); }
int Size(Rng& rng, Range range) { return static_cast<int>(std::lround(LogUniform(rng, range))); }

OptimizerOptions RandomOptimizer(Rng& rng, const MiniatureRanges& ranges,
                                 MiniatureOptions options) {
  OptimizerOptions& optimizer = options.optimizer;
  optimizer.kind = rng.Uniform() < ranges.adam ? OptimizerKind::kAdam : OptimizerKind::kSgd;
  const double momentum = Uniform(rng, ranges.momentum);
  optimizer.momentum = optimizer.kind == OptimizerKind::kAdam ? 0.9 : momentum;
  optimizer.base_batch =
      std::min(Size(rng, ranges.base_batch), std::max(1, options.training_samples / 16));
  optimizer.rule = Choose(rng, ranges.rules);
  optimizer.schedule = Choose(rng, ranges.schedules);
  optimizer.planned_samples = std::clamp(
      LogUniform(rng, ranges.planned_iterations) * optimizer.base_batch,
      ranges.epochs.low * options.training_samples, ranges.epochs.high * options.training_samples);
  const double factor = LogUniform(rng, ranges.rate) *
                        std::pow(optimizer.base_batch / 128, Uniform(rng, ranges.rate_exponent));
  optimizer.learning_rate = ReferenceLearningRate(options) * std::min(factor, ranges.largest_rate);
  return optimizer;
}

}  // namespace

std::string_view Name(MiniatureFamily family) { return kFamilyNames[static_cast<int>(family)]; }

std::string_view Name(Activation activation) {
  return kActivationNames[static_cast<int>(activation)];
}

void MiniatureOptions::Validate() const {
  RequireEnum("family", family, kMiniatureFamilyCount);
  const bool fashion = family == MiniatureFamily::kFashion;
  RequireEnum("network.activation", network.activation, 2);
  RequireInRange("network.inputs", network.inputs, 1, 64);
  RequireInRange("network.hidden", network.hidden, 1, 128);
  RequireInRange("network.second_hidden", network.second_hidden, 0, 128);
  RequireInRange("network.classes", network.classes, 2, fashion ? 10 : kLanes);
  RequireInRange("training_samples", training_samples, 64, 60000);
  RequireInRange("held_out_samples", held_out_samples, 16, 10000);
  RequireInRange("label_noise", label_noise, 0.0, 0.9);
  RequireInRange("spectrum", spectrum, 0.0, 2.0);
  RequireInRange("feature_scale", feature_scale, 0.05, 20.0);
  RequireInRange("initial_scale", initial_scale, 0.05, 5.0);
  RequireInRange("teacher_hidden", teacher_hidden, 1, 64);
  RequireInRange("temperature", temperature, 0.01, 10.0);
  RequireInRange("prototypes", prototypes, 1, 16);
  RequireInRange("noise_every", noise_every, 1, 100);
  RequireEnum("optimizer.kind", optimizer.kind, 2);
  RequireEnum("optimizer.rule", optimizer.rule, kLearningRateRuleCount);
  RequireEnum("optimizer.schedule", optimizer.schedule, 3);
  RequireInRange("optimizer.learning_rate", optimizer.learning_rate, 1e-9, 1e3);
  RequireInRange("optimizer.momentum", optimizer.momentum, 0.0, 0.999);
  RequireInRange("optimizer.base_batch", optimizer.base_batch, 1.0, 1e6);
  RequireInRange("optimizer.planned_samples", optimizer.planned_samples, 1.0, 1e12);
}

double ReferenceLearningRate(const MiniatureOptions& options) {
  const double scale = options.feature_scale;
  if (options.optimizer.kind == OptimizerKind::kAdam) return kAdamRate / scale;
  return kSgdRate * (1 - options.optimizer.momentum) / (scale * scale);
}

MiniatureOptions RandomMiniature(Rng& rng, const MiniatureRanges& ranges) {
  MiniatureOptions options;
  options.family = Choose(rng, ranges.families);
  const bool fashion = options.family == MiniatureFamily::kFashion;
  MiniatureShape& network = options.network;
  network.hidden = Size(rng, ranges.hidden);
  network.second_hidden = rng.Uniform() < ranges.second_layer ? network.hidden : 0;
  network.inputs = fashion ? 49 : Size(rng, ranges.inputs);
  network.classes = Size(rng, ranges.classes);
  if (fashion) network.classes = std::min(network.classes, 10);
  network.activation = rng.Uniform() < 0.5 ? Activation::kRelu : Activation::kTanh;
  options.training_samples = Size(rng, ranges.training_samples);
  options.label_noise = Uniform(rng, ranges.label_noise);
  options.spectrum = Uniform(rng, ranges.spectrum);
  options.initial_scale = Uniform(rng, ranges.initial_scale);
  options.temperature = LogUniform(rng, ranges.temperature);
  options.optimizer = RandomOptimizer(rng, ranges, options);
  options.task_seed = rng.Next();
  options.seed = rng.Next();
  options.Validate();
  return options;
}

}  // namespace dynamix
