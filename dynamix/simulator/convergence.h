// Convergence: what training does to loss and accuracy, independent of how long it takes.
//
// Two engines implement it: the noisy quadratic model (closed form) and miniatures (real SGD on
// tiny tasks). Both are deterministic given their seed, and both report only what a live job can
// measure; the truth (held-out loss and accuracy) is for rewards, targets and tables, never for
// states.
#pragma once

#include <memory>
#include <vector>

#include "dynamix/core/report.h"

namespace dynamix {

class Convergence {
 public:
  virtual ~Convergence() = default;

  // Runs `iterations` synchronous steps with these local batches (0: the worker is absent; at least
  // one is positive). Returns what the workers measured: training loss, accuracy, gradient
  // statistics, noise scale (estimated from per-worker gradients exactly as a live job does,
  // missing with one worker), learning rate.
  virtual TrainingReport Run(const std::vector<int>& batches, int iterations) = 0;

  // Truth: held-out loss and accuracy now. Costs a pass over the held-out samples; cached until the
  // next Run.
  virtual double HeldOutLoss() = 0;
  virtual double HeldOutAccuracy() = 0;

  // The part of the schedule that is over, by its clock; above 1 after its end.
  virtual double Progress() const = 0;

  // An exact copy, for hindsight searches: both copies continue identically under identical calls.
  virtual std::unique_ptr<Convergence> Clone() const = 0;
};

}  // namespace dynamix
