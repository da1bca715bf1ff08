// What one miniature trains, and the distribution from which training draws them.
//
// Plain values; Validate throws InputError naming the field, its value and the allowed range.
// RandomMiniature is a pure function of its Rng and ranges. Every range of the training
// distribution is a field of MiniatureRanges, so that a held-out distribution is the same struct
// with other numbers.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/simulator/convergence.h"
#include "dynamix/simulator/miniature_network.h"

namespace dynamix {

// fashion     Fashion-MNIST averaged down to 7 x 7, in its principal components
// teacher     gaussian inputs, labels drawn from the softmax of a random network (Saad and Solla
// 1995) prototypes  gaussian inputs, label of the nearest of several random points per class
enum class MiniatureFamily : int { kFashion = 0, kTeacher, kPrototypes };
inline constexpr int kMiniatureFamilyCount = 3;
std::string_view Name(MiniatureFamily family);
std::string_view Name(Activation activation);  // relu, tanh

struct MiniatureOptions {
  MiniatureFamily family = MiniatureFamily::kFashion;
  // inputs: leading components of the pool in use (fashion: at most 49, others: at most 64).
  MiniatureShape network;
  int training_samples = 8000;  // [64, rows of the pool]; a seeded random subset
  int held_out_samples = 512;   // [16, held-out rows of the pool]
  // Share of labels replaced by a random one, in training and held-out samples, [0, 0.9].
  double label_noise = 0;
  // Component d has deviation natural_d^spectrum, then all are scaled to mean square 1. 1 is the
  // data as it is, 0 makes every direction equal (easy), above 1 stretches the spectrum
  // (ill-conditioned). [0, 2]
  double spectrum = 1;
  double feature_scale = 1;   // multiplies all inputs, [0.05, 20]
  double initial_scale = 1;   // multiplies the initial weights, [0.05, 5]
  int teacher_hidden = 16;    // teacher: hidden units, [1, 64]
  double temperature = 0.25;  // teacher: of the softmax over logits of deviation 1, [0.01, 10]
  int prototypes = 3;         // prototypes: points per class, [1, 16]
  // Every how many iterations per-worker gradients are kept apart for the noise scale, [1, 100].
  int noise_every = 1;
  OptimizerOptions optimizer;
  std::uint64_t task_seed = 1;  // of the task: subset, classes, labels, teacher or prototypes
  std::uint64_t seed = 1;       // of the run: initial weights and order of samples

  void Validate() const;
};

struct Range {
  double low, high;
};

// The training distribution. Sizes are drawn log-uniformly, the rest uniformly unless said
// otherwise.
struct MiniatureRanges {
  std::vector<MiniatureFamily> families = {MiniatureFamily::kFashion, MiniatureFamily::kTeacher};
  Range hidden = {8, 40};
  double second_layer = 0.25;  // probability of a second hidden layer, as wide as the first
  Range inputs = {16, 49};     // of the gaussian families; fashion uses all of its 49
  Range classes = {4, 10};
  Range training_samples = {4000, 20000};
  Range label_noise = {0, 0.15};
  Range spectrum = {0.5, 1.25};
  Range initial_scale = {0.5, 1.5};
  Range temperature = {0.05, 0.5};
  double adam = 0.25;  // probability of Adam instead of SGD
  Range momentum = {0, 0.95};
  Range base_batch = {16, 1024};  // and at most 1/16 of the training samples
  // The base learning rate is rate * ReferenceLearningRate(options) * (base_batch / 128)^exponent,
  // never more than largest_rate * ReferenceLearningRate: exponents near 1/2 suit the base batch, 0
  // and 1 start badly.
  Range rate = {0.3, 1.5};  // log-uniform
  Range rate_exponent = {0, 1};
  double largest_rate = 3;
  // Planned samples: as many iterations at the base batch (log-uniform), inside these epochs.
  Range planned_iterations = {1200, 8000};
  Range epochs = {4, 60};
  std::vector<LearningRateRule> rules = {LearningRateRule::kNone, LearningRateRule::kLinear,
                                         LearningRateRule::kSqrt, LearningRateRule::kAdaScale};
  std::vector<Schedule> schedules = {Schedule::kConstant, Schedule::kCosine, Schedule::kStep};
};

// A learning rate that suits a global batch of 128 (measured, see miniature_options.cc).
double ReferenceLearningRate(const MiniatureOptions& options);

// Options for one task; they always pass Validate.
MiniatureOptions RandomMiniature(Rng& rng, const MiniatureRanges& ranges = {});

}  // namespace dynamix
