// Miniature: the convergence engine that really trains. A tiny MLP on a tiny task, with every rule
// of a live job: unequal local batches, weighted gradients, one shared order of samples, a learning
// rate that follows the global batch, and a noise scale estimated from per-worker gradients.
//
// One thread per object; objects share only immutable data. Deterministic: same options and calls,
// same bytes on the same machine. The constructor throws InputError on bad options or a missing
// pool; Run does not fail: training that diverges (a loss or gradient that is not finite) stops
// changing the weights, reports missing statistics, and holds the worst held-out loss from then on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dynamix/core/noise_scale.h"
#include "dynamix/core/window_statistics.h"
#include "dynamix/job/miniature_options.h"
#include "dynamix/simulator/convergence.h"
#include "dynamix/simulator/miniatures/network.h"
#include "dynamix/simulator/miniatures/task.h"
#include "dynamix/simulator/sample_order.h"

namespace dynamix {

class Miniature final : public Convergence {
 public:
  // Held-out losses above this are cut to it.
  static constexpr double kWorstLoss = 10;
  // Workers enter the noise estimate in at most this many groups (a group is a bigger worker, so
  // the estimate stays unbiased): the cost of a window depends on the global batch, not on the
  // number of workers.
  static constexpr int kMostGroups = 8;

  Miniature(const MiniatureOptions& options, const MiniaturePools& pools);

  TrainingReport Run(const std::vector<int>& batches, int iterations) override;
  double HeldOutLoss() override;
  double HeldOutAccuracy() override;
  double Progress() const override { return position_ / options_.optimizer.planned_samples; }
  std::unique_ptr<Convergence> Clone() const override;

  const MiniatureOptions& options() const { return options_; }
  const MiniatureTask& task() const { return *task_; }
  const MiniatureNetwork& network() const { return network_; }
  const AlignedFloats& parameters() const { return parameters_; }
  std::int64_t samples_seen() const { return samples_seen_; }
  bool diverged() const { return diverged_; }

 private:
  void Iterate(const std::vector<int>& groups, int global_batch, WindowStatistics& window);
  LossSum AddGradient(int count, float* gradient);
  void Step(double gradient_scale, double learning_rate);
  void EvaluateHeldOut();

  MiniatureOptions options_;
  // Shared with clones, which read the same samples.
  std::shared_ptr<const MiniatureTask> task_;
  MiniatureNetwork network_;
  SampleOrder order_;
  NoiseScale noise_scale_;
  AlignedFloats parameters_, gradient_, part_;
  AlignedFloats first_moment_, second_moment_;  // SGD: velocity, empty; Adam: both
  AlignedFloats inputs_;                        // one pass, gathered
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint8_t> labels_;
  std::int64_t samples_seen_ = 0;
  double position_ = 0;  // of the schedule's clock, in samples
  std::int64_t iterations_ = 0;
  bool diverged_ = false;
  bool evaluated_ = false;
  double held_out_loss_ = 0, held_out_accuracy_ = 0;
};

}  // namespace dynamix
