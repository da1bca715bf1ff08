// What one miniature trains: its data, network and optimizer.
//
// Plain values; Validate throws InputError naming the field, its value and the allowed range.
#pragma once

#include <cstdint>
#include <string_view>

#include "dynamix/job/optimizer_options.h"

namespace dynamix {

enum class Activation : int { kRelu = 0, kTanh };

inline constexpr int kMostMiniatureClasses = 16;

struct MiniatureShape {
  int inputs = 49;
  int hidden = 32;
  int second_hidden = 0;  // 0: one hidden layer
  int classes = 10;       // at most kMostMiniatureClasses
  Activation activation = Activation::kRelu;
};

// fashion     Fashion-MNIST averaged down to 7 x 7, in its principal components
// teacher     gaussian inputs, labels drawn from the softmax of a random network
//             (Saad and Solla 1995)
// prototypes  gaussian inputs, label of the nearest of several random points per class
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

}  // namespace dynamix
