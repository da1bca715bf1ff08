// RealConvergence: the convergence engine that trains a real model on real data, all workers of the
// job in one process. With it a SimulatedCluster is a virtual cluster (virtual_cluster.h).
//
// Exactly the rules of a live job: the global sampler, gradients as sums over samples, one division
// by the samples used, learning rate by rule and schedule, noise scale from per-worker gradients.
// One thread per object; objects share only the data. Deterministic on one thread per object.
// Training that diverges (a loss or gradient that is not finite) stops changing the weights,
// reports missing statistics and holds the worst held-out loss from then on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dynamix/core/noise_scale.h"
#include "dynamix/core/sampler.h"
#include "dynamix/core/window_statistics.h"
#include "dynamix/job/optimizer_options.h"
#include "dynamix/simulator/convergence.h"
#include "dynamix/training/classifier.h"
#include "dynamix/training/optimizer.h"
#include "dynamix/training/parameters.h"

namespace dynamix {

struct RealConvergenceOptions {
  ModelOptions model;
  OptimizerOptions optimizer;
  AugmentationOptions augmentation;
  std::uint64_t seed = 1;       // of initial weights, order of samples and augmentation
  int held_out_samples = 2000;  // the first so many held-out ones are the truth
  // Every how many iterations the workers' gradients are kept apart for the noise scale, [1, 100].
  // In between, one pass serves all workers (unless the model has batch norm).
  int noise_every = 2;
  // Workers enter the noise estimate in at most this many groups: a group is a larger worker, so
  // the estimate stays unbiased. [2, 4096]
  int most_groups = 8;
  // With batch norm, each group is a pass of its own, whose statistics are of its samples: each
  // worker when there are at most this many, else several workers together. [2, 4096]
  int norm_groups = 4096;
  int largest_pass = 256;  // samples of one forward pass, >= 1: what the cache likes
};

class RealConvergence final : public Convergence {
 public:
  static constexpr double kWorstLoss = 10;

  RealConvergence(const RealConvergenceOptions& options, std::shared_ptr<const Dataset> data);
  ~RealConvergence() override;

  TrainingReport Run(const std::vector<int>& batches, int iterations) override;
  double HeldOutLoss() override;
  double HeldOutAccuracy() override;
  double Progress() const override { return position_ / options_.optimizer.planned_samples; }
  std::unique_ptr<Convergence> Clone() const override;

  const Parameters& parameters() const { return parameters_; }
  const Sampler& sampler() const { return sampler_; }
  const RealConvergenceOptions& options() const { return options_; }
  bool diverged() const { return diverged_; }

 private:
  void Iterate(const std::vector<int>& parts, int global_batch, WindowStatistics& window);
  // Adds the gradient of the next `count` samples from `position` on to the parameters' gradients.
  void AddGradient(std::int64_t position, int count, PassSums& sums);
  // The same for each part apart; returns sum_i b_i |g_i|^2.
  double AddGradientsApart(const std::vector<int>& parts, PassSums& sums);
  void EvaluateHeldOut();

  RealConvergenceOptions options_;
  std::shared_ptr<const Dataset> data_;  // shared with clones and other jobs, which only read it
  Classifier classifier_;
  Parameters parameters_;
  Optimizer optimizer_;
  Sampler sampler_;
  NoiseScale noise_scale_;
  std::int64_t iterations_ = 0;
  double position_ = 0;  // of the schedule's clock, in samples
  bool diverged_ = false;
  bool evaluated_ = false;
  double held_out_loss_ = 0, held_out_accuracy_ = 0;
};

}  // namespace dynamix
