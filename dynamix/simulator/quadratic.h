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
#include <string_view>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/simulator/convergence.h"

namespace dynamix {

class TomlFields;

struct QuadraticOptions {
  int dimensions = 32;           // eigendirections of the Hessian, [1, 64]
  double curvature = 1.0;        // largest eigenvalue h_1, (0, 1e6]
  double curvature_decay = 2.0;  // h_d = curvature * d^-decay, [0, 4]
  double initial_loss = 2.2;     // excess loss at the start, (0, 1e6]
  double loss_decay =
      0.6;  // direction d holds a part ~ d^-decay of the initial excess loss, [-4, 4]
  double noise_scale = 60;   // tr(C) / |G|^2 at the start, in samples, (0, 1e9]
  double noise_floor = 0.1;  // part of the gradient covariance that stays when the excess loss is
                             // gone, [0, 1]; 1: constant covariance, as in the paper
  double noise_dimensions = 25;  // tr(C)^2 / tr(C^2) of the measured gradients, [1, 1e9]: how noisy
                                 // estimates of gradient norms and noise scale are, nothing else;
                                 // about 25 looks like miniatures do
  double irreducible_loss = 0.1;  // training loss at the minimum, [0, 1e6]
  double held_out_gap = 0.1;      // held-out minus training loss at the minimum, [0, 1e6]
  double chance_accuracy = 0.1;   // accuracy at the initial loss, [0, 1)
  double best_accuracy = 0.95;    // accuracy at the minimum, (chance_accuracy, 1]
  double accuracy_exponent =
      0.8;  // accuracy = best - (best - chance) * (excess / initial)^exponent, (0, 4]

  // What ranges of single fields cannot say. Throws InputError naming `field`.
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

  // Second moments per direction: of position x, of velocity u (the last step), and across.
  struct Moments {
    Vector xx{}, xu{}, uu{};
  };
  // Expectations over directions in the present state.
  struct Summary {
    double excess_loss;
    double squared_norm;  // E|G|^2
    double trace;         // tr(C)
  };

  Summary Summarise() const;
  double CovarianceFactor(double excess_loss) const;
  // Fills rates_ (what a direction's gradient is multiplied by in one step).
  void SetRates(double learning_rate, double global_batch, int iterations,
                double covariance_factor);
  void LimitDivergence();
  void RememberNoise(double trace, double squared_norm, int iterations);
  double MeasuredNoiseScale() const;
  double Accuracy(double excess_loss) const;
  TrainingReport Measure(const Summary& before, const Summary& after, int workers,
                         double global_batch, int iterations);

  QuadraticOptions options_;
  OptimizerOptions optimizer_;
  Rng rng_;
  Vector curvature_{}, covariance_{};  // h_d; c_d at the start
  double initial_trace_ = 0;
  Moments moments_;
  Vector rates_{};              // of the last window
  Vector squared_gradients_{};  // Adam's second moments, before their start correction
  double squared_gradients_weight_ = 0;
  double samples_seen_ = 0;
  double measured_trace_ = 0, measured_squared_norm_ = 0;  // smoothed, as NoiseScale does
  Summary now_;
};

}  // namespace dynamix
