// The noisy quadratic model of training (Zhang et al. 2019, arXiv 1907.04164) as a Convergence
// engine.
//
// Deterministic truth (expected loss), noisy measurements. One window costs O(dimensions) whatever
// its iterations. Equations and their sources head quadratic.cc. Not thread-safe. Never fails once
// constructed; a learning rate past the edge of stability makes the loss grow, as it does in a real
// job, up to 1e6 x start.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "dynamix/core/noise_scale.h"
#include "dynamix/core/rng.h"
#include "dynamix/simulator/convergence.h"

namespace dynamix {

class TomlFields;

struct QuadraticOptions {
  int dimensions = 32;           // eigendirections of the Hessian, [1, 64]
  double curvature = 1.0;        // largest eigenvalue h_1, (0, 1e6]
  double curvature_decay = 1.2;  // h_d = curvature * d^-decay, [0, 4]
  double initial_loss = 2.2;     // excess loss at the start, (0, 1e6]
  double loss_decay =
      0.6;  // direction d holds a part ~ d^-decay of the initial excess loss, [-4, 4]
  double noise_scale = 60;   // tr(C) / |G|^2 at the start, in samples, (0, 1e9]
  double noise_floor = 0.1;  // part of the gradient covariance that stays when the excess loss is
                             // gone, [0, 1]; 1: constant covariance, as in the paper
  double irreducible_loss = 0.1;  // training loss at the minimum, [0, 1e6]
  double held_out_gap = 0.1;      // held-out minus training loss at the minimum, [0, 1e6]
  double chance_accuracy = 0.1;   // accuracy at the initial loss, [0, 1)
  double best_accuracy = 0.95;    // accuracy at the minimum, (chance_accuracy, 1]
  double accuracy_exponent =
      0.8;  // accuracy = best - (best - chance) * (excess / initial)^exponent, (0, 4]

  // Throws InputError naming `field` when a value is outside its range.
  void Validate(std::string_view field) const;
};

void VisitFields(TomlFields& fields, QuadraticOptions& options);

class Quadratic : public Convergence {
 public:
  static constexpr int kMaxDimensions = 64;

  Quadratic(const QuadraticOptions& options, const OptimizerOptions& optimizer, std::uint64_t seed);

  TrainingReport Run(const std::vector<int>& batches, int iterations) override;
  double HeldOutLoss() override;
  double HeldOutAccuracy() override;
  std::unique_ptr<Convergence> Clone() const override;

  // Truth of the model, for tests, hindsight and calibration.
  double ExcessLoss() const;                       // sum_d h_d E[x_d^2] / 2
  double TrueNoiseScale() const;                   // tr(C) / sum_d h_d^2 E[x_d^2], in samples
  double LearningRate(double global_batch) const;  // in effect now at this global batch

 private:
  using Vector = std::array<double, kMaxDimensions>;

  // Second moments of position x and velocity u per direction.
  struct Moments {
    Vector xx, xu, uu;
  };
  struct GradientMoments {
    double squared_norm;   // E|G|^2
    double trace;          // tr(C)
    double trace_squared;  // tr(C^2)
    double crossed;        // E[G^T C G]
  };

  void Advance(double global_batch, double learning_rate, int iterations);
  void UpdatePreconditioner(double global_batch, int iterations);
  GradientMoments MeasureGradient() const;
  double CovarianceFactor() const;
  double Accuracy(double excess_loss) const;
  TrainingReport Measure(const GradientMoments& gradient, double excess_before, int workers,
                         double global_batch, int iterations);

  QuadraticOptions options_;
  OptimizerOptions optimizer_;
  Rng rng_;
  Vector curvature_, covariance_;  // h_d; c_d at the start
  Moments moments_;
  Vector squared_gradient_;  // Adam's second moment, before its start correction
  double second_moment_weight_ = 0;
  double last_learning_rate_ = 0;
  double samples_seen_ = 0;
  NoiseScale noise_scale_;
  double iterations_seen_ = 0;
};

}  // namespace dynamix
