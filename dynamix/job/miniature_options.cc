#include "dynamix/job/miniature_options.h"

#include <array>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr std::array<std::string_view, kMiniatureFamilyCount> kFamilyNames = {"fashion", "teacher",
                                                                              "prototypes"};

constexpr std::array<std::string_view, 2> kActivationNames = {"relu", "tanh"};

template <typename Enum>
void RequireEnum(std::string_view field, Enum value, int count) {
  RequireInRange(field, static_cast<int>(value), 0, count - 1);
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
  RequireInRange("network.classes", network.classes, 2, fashion ? 10 : kMostMiniatureClasses);
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
  RequireEnum("optimizer.kind", optimizer.kind, kOptimizerKindCount);
  RequireEnum("optimizer.rule", optimizer.rule, kLearningRateRuleCount);
  RequireEnum("optimizer.schedule", optimizer.schedule, kScheduleCount);
  RequireEnum("optimizer.clock", optimizer.clock, kScheduleClockCount);
  RequireInRange("optimizer.learning_rate", optimizer.learning_rate, 1e-9, 1e3);
  RequireInRange("optimizer.momentum", optimizer.momentum, 0.0, 0.999);
  RequireInRange("optimizer.weight_decay", optimizer.weight_decay, 0.0, 1.0);
  RequireInRange("optimizer.base_batch", optimizer.base_batch, 1.0, 1e6);
  RequireInRange("optimizer.planned_samples", optimizer.planned_samples, 1.0, 1e12);
}

}  // namespace dynamix
