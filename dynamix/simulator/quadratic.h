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

#include "dynamix/core/rng.h"
#include "dynamix/job/optimizer_options.h"
#include "dynamix/job/quadratic_options.h"
#include "dynamix/simulator/convergence.h"

namespace dynamix {

class Quadratic : public Convergence {
 public:
  static constexpr int kMaxDimensions = kMaxQuadraticDimensions;

  Quadratic(const QuadraticOptions& options, const OptimizerOptions& optimizer, std::uint64_t seed);

  TrainingReport Run(const std::vector<int>& batches, int iterations) override;
  double HeldOutLoss() override;
  double HeldOutAccuracy() override;
  double Progress() const override { return position_ / optimizer_.planned_samples; }
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
  double position_ = 0;                                    // of the schedule's clock, in samples
  double measured_trace_ = 0, measured_squared_norm_ = 0;  // smoothed, as NoiseScale does
  Summary now_;
};

}  // namespace dynamix
