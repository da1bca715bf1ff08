// The distribution from which learning draws miniatures.
//
// RandomMiniature is a pure function of its Rng and ranges. Every range of the training
// distribution is a field of MiniatureRanges, so that a held-out distribution is the same struct
// with other numbers.
#pragma once

#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/job/miniature_options.h"

namespace dynamix {

struct Range {
  double low, high;
};

// The training distribution. Sizes are drawn log-uniformly, the rest uniformly unless said
// otherwise.
struct MiniatureRanges {
  std::vector<MiniatureFamily> families = {MiniatureFamily::kFashion, MiniatureFamily::kTeacher};
  Range hidden = {8, 32};
  double second_layer = 0.25;  // probability of a second hidden layer, as wide as the first
  Range inputs = {16, 49};     // of the gaussian families; fashion uses all of its 49
  Range classes = {4, 10};
  Range training_samples = {4000, 20000};
  Range label_noise = {0, 0.15};
  Range spectrum = {0.5, 1.25};
  Range initial_scale = {0.5, 1.5};
  Range temperature = {0.05, 0.5};
  double adam = 0.5;  // probability of Adam instead of SGD
  Range momentum = {0, 0.95};
  Range base_batch = {16, 256};  // and at most 1/16 of the training samples
  // The base learning rate:
  //   ReferenceLearningRate(options)
  //   * min(rate * (base_batch / 128)^rate_exponent, largest_rate)
  // Exponents near 1/2 suit the base batch, 0 and 1 start badly.
  Range rate = {0.15, 2};  // log-uniform
  Range rate_exponent = {0, 1};
  double largest_rate = 3;
  // Planned samples: as many iterations at the base batch (log-uniform), inside these epochs.
  Range planned_iterations = {1200, 8000};
  Range epochs = {1, 60};
  std::vector<LearningRateRule> rules = {LearningRateRule::kNone, LearningRateRule::kLinear,
                                         LearningRateRule::kSqrt, LearningRateRule::kAdaScale};
  std::vector<Schedule> schedules = {Schedule::kConstant, Schedule::kCosine, Schedule::kStep,
                                     Schedule::kWarmup};
};

// A learning rate that suits a global batch of 128 (measured, see ranges.cc).
double ReferenceLearningRate(const MiniatureOptions& options);

// Options for one task; they always pass Validate.
MiniatureOptions RandomMiniature(Rng& rng, const MiniatureRanges& ranges = {});

}  // namespace dynamix
