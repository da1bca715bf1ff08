// Random tasks: the distributions policies are trained, selected and judged on.
//
//   training    what a policy learns on
//   validation  the same ranges, other seeds: checkpoints are selected on it
//   held out    other seeds, and partly outside the ranges: judged on, never tuned on
// Each kind draws from its own stream, so equal generators still give different tasks. Ranges head
// distribution.cc.
#pragma once

#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/simulator/task.h"

namespace dynamix {

enum class DistributionKind : int { kTraining = 0, kValidation, kHeldOut };

struct DistributionOptions {
  DistributionKind kind = DistributionKind::kTraining;
  int min_workers = 2;  // [1, max_workers]
  int max_workers = 32;
  double miniature_share = 0.75;          // of the tasks; the others are quadratics, [0, 1]
  std::vector<MiniatureFamily> families;  // of the miniatures; empty: those of the kind
  MiniaturePools pools;                   // those of the families are needed
  // Quadratics fitted to real runs: a third of the quadratics start from one of them. Empty: none.
  std::vector<QuadraticOptions> fitted;
  int window_iterations = kWindowIterations;
  // Length of the reference run at the base batch, [100, max_iterations].
  int min_iterations = 200;
  int max_iterations = 3200;

  // Throws InputError naming the field.
  void Validate() const;
};

// Takes one number from `rng`, whatever the task; the same number gives the same task. Redraws (up
// to a limit) tasks whose reference gains too little to learn from. Safe to call from several
// threads with separate generators.
Task RandomTask(Rng& rng, const DistributionOptions& options);

}  // namespace dynamix
