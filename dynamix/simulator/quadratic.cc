// The noisy quadratic model: Zhang et al. 2019, "Which algorithmic choices matter at which batch
// sizes?" (arXiv 1907.04164). In the Hessian's eigenbasis direction d has curvature h_d, position
// x_d and excess loss h_d x_d^2 / 2. A global batch of B samples gives the gradient h_d x_d + noise
// of variance c_d / B.
//
// SGD with momentum m in PyTorch's form (v' = m v + g, x' = x - lr v'), with u = lr v and
// a = lr h_d:
//
//   x'      = (1 - a) x - m u - xi
//   u'      =      a  x + m u + xi
//   var(xi) = q = lr^2 c_d / B
//
// Second moments S = E[(x, u)(x, u)^T] follow S' = M S M^T + Q, so k steps at constant B and lr are
//
//   S_k     = M^k (S - S*) (M^k)^T + S*
//
// with M^k by squaring, and the fixed point S* of x'' = (1 + m - a) x' - m x - xi:
//
//   E[xx]*  = s (1 + m) / a
//   E[xu]*  = -s
//   E[uu]*  = 2 s
//   s       = q / ((1 - m) (2 (1 + m) - a))
//
// m = 0 gives E[x^2] -> (1 - a)^2 E[x^2] + q; small a gives the effective rate lr / (1 - m). Exact,
// also past the edge of stability a = 2 (1 + m), where S grows.
//
// Spectrum, with c_d scaled so that tr(C) / |G|^2 is `noise_scale` at the start. As in the paper
// C = H; unlike there, noise falls with the loss, as it does in a network (constant in a window):
//
//   h_d                           = h_1 d^-curvature_decay
//   initial loss in direction d   ~ d^-loss_decay
//   c_d                           ~ h_d
//   C(t)                          = C (floor + (1 - floor) excess / initial excess)
//
// Adam: directions are taken as coordinates. Its update lr m / sqrt(v) is momentum SGD with a rate
// that is constant in a window: sign-like where the mean gradient dominates, lr sqrt(B / c_d) where
// noise does.
//
//   rate_d  = lr (1 - beta1) / sqrt(v_d)
//   v_d     = average (beta2 = 0.999) of h_d^2 E[x_d^2] + c_d / B
//
// AdamW is Adam here: x is the distance to the optimum, and the model does not say where the origin
// lies that decay pulls to.
//
// What is reached:
//
//   held-out loss = excess + irreducible + gap (1 - excess / initial excess)
//   accuracy      = best - (best - chance) (excess / initial excess)^exponent
//
// Measurements of a window of k iterations on N workers carry the sampling error of real ones. For
// gaussian gradients whose covariance is spread over D directions (tr(C^2) = tr(C)^2 / D), averaged
// over iterations as NoiseScale does:
//
//   Var|g|^2  = (4 |G|^2 tr(C) / B + 2 tr(C)^2 / B^2) / (D k)
//   Var tr(C) = 2 tr(C)^2 / (D (N - 1) k)
//   |G|^2     = |g|^2 - tr(C) / B
#include "dynamix/simulator/quadratic.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"
#include "dynamix/core/simd.h"

namespace dynamix {
namespace {

constexpr double kBeta2 = 0.999;
constexpr double kNoiseMemory = 0.95;   // per iteration, as NoiseScale's default
constexpr double kLargestExcess = 1e6;  // over the initial one
constexpr double kTiny = 1e-300;

// One power matrix per direction.
struct Powers {
  alignas(64) std::array<double, Quadratic::kMaxDimensions> xx, xu, ux, uu;
};

// power <- power * power, or power * M with M = (1 - a, -m; a, m).
DYNAMIX_SIMD void SquarePowers(Powers& p, int dimensions) {
  for (int d = 0; d < dimensions; ++d) {
    const double cross = p.xu[d] * p.ux[d], sum = p.xx[d] + p.uu[d];
    p.xx[d] = p.xx[d] * p.xx[d] + cross;
    p.uu[d] = p.uu[d] * p.uu[d] + cross;
    p.xu[d] *= sum;
    p.ux[d] *= sum;
  }
}

DYNAMIX_SIMD void StepPowers(Powers& p, const double* a, double momentum, int dimensions) {
  for (int d = 0; d < dimensions; ++d) {
    const double xx = p.xx[d] * (1 - a[d]) + p.xu[d] * a[d];
    const double ux = p.ux[d] * (1 - a[d]) + p.uu[d] * a[d];
    p.xu[d] = momentum * (p.xu[d] - p.xx[d]);
    p.uu[d] = momentum * (p.uu[d] - p.ux[d]);
    p.xx[d] = xx;
    p.ux[d] = ux;
  }
}

// S <- P (S - S*) P^T + S*.
DYNAMIX_SIMD void ApplyPowers(const Powers& p, const double* a, const double* q, double momentum,
                              int dimensions, double* xx, double* xu, double* uu) {
  for (int d = 0; d < dimensions; ++d) {
    const double s = q[d] / ((1 - momentum) * (2 * (1 + momentum) - a[d]));
    const double fixed = s * (1 + momentum) / a[d];
    const double dxx = xx[d] - fixed, dxu = xu[d] + s, duu = uu[d] - 2 * s;
    const double row_x = p.xx[d] * dxx + p.xu[d] * dxu, row_u = p.xx[d] * dxu + p.xu[d] * duu;
    const double low_x = p.ux[d] * dxx + p.uu[d] * dxu, low_u = p.ux[d] * dxu + p.uu[d] * duu;
    xx[d] = row_x * p.xx[d] + row_u * p.xu[d] + fixed;
    xu[d] = row_x * p.ux[d] + row_u * p.uu[d] - s;
    uu[d] = low_x * p.ux[d] + low_u * p.uu[d] + 2 * s;
  }
}

// M^iterations, from the highest bit down.
void RaisePowers(Powers& p, const double* a, double momentum, int iterations, int dimensions) {
  for (int d = 0; d < dimensions; ++d) {
    p.xx[d] = 1 - a[d];
    p.xu[d] = -momentum;
    p.ux[d] = a[d];
    p.uu[d] = momentum;
  }
  int bit = 1;
  while (bit <= iterations / 2) bit *= 2;
  for (bit /= 2; bit > 0; bit /= 2) {
    SquarePowers(p, dimensions);
    if (iterations & bit) StepPowers(p, a, momentum, dimensions);
  }
}

}  // namespace

Quadratic::Quadratic(const QuadraticOptions& options, const OptimizerOptions& optimizer,
                     std::uint64_t seed)
    : options_(options), optimizer_(optimizer), rng_(seed) {
  const int dimensions = options_.dimensions;
  DYNAMIX_CHECK(dimensions >= 1 && dimensions <= kMaxDimensions, "dimensions fit");
  double loss_sum = 0, curvature_sum = 0;
  for (int d = 0; d < dimensions; ++d) {
    curvature_[d] = options_.curvature * std::pow(d + 1, -options_.curvature_decay);
    moments_.xx[d] = std::pow(d + 1, -options_.loss_decay);
    loss_sum += moments_.xx[d];
    curvature_sum += curvature_[d];
  }
  double squared_norm = 0;
  for (int d = 0; d < dimensions; ++d) {
    moments_.xx[d] *= 2 * options_.initial_loss / (loss_sum * curvature_[d]);
    squared_norm += curvature_[d] * curvature_[d] * moments_.xx[d];
  }
  initial_trace_ = options_.noise_scale * squared_norm;
  for (int d = 0; d < dimensions; ++d)
    covariance_[d] = initial_trace_ * curvature_[d] / curvature_sum;
  now_ = Summarise();
}

Quadratic::Summary Quadratic::Summarise() const {
  // Four chains of additions, so that they overlap.
  std::array<double, 4> loss{}, norm{};
  for (int d = 0; d < options_.dimensions; ++d) {
    const double scaled = curvature_[d] * moments_.xx[d];
    loss[d & 3] += scaled;
    norm[d & 3] += curvature_[d] * scaled;
  }
  Summary sum;
  sum.excess_loss = 0.5 * ((loss[0] + loss[1]) + (loss[2] + loss[3]));
  sum.squared_norm = (norm[0] + norm[1]) + (norm[2] + norm[3]);
  sum.trace = initial_trace_ * CovarianceFactor(sum.excess_loss);
  return sum;
}

double Quadratic::CovarianceFactor(double excess_loss) const {
  const double remaining = std::min(excess_loss / options_.initial_loss, 10.0);
  return options_.noise_floor + (1 - options_.noise_floor) * remaining;
}

void Quadratic::SetRates(double learning_rate, double global_batch, int iterations,
                         double covariance_factor) {
  const int dimensions = options_.dimensions;
  const double momentum = optimizer_.momentum;
  const double past = std::pow(kBeta2, iterations);
  const bool adaptive = optimizer_.adaptive();
  squared_gradients_weight_ = past * squared_gradients_weight_ + (1 - past);
  for (int d = 0; d < dimensions; ++d) {
    double rate = learning_rate;
    if (adaptive) {
      const double fresh = curvature_[d] * curvature_[d] * moments_.xx[d] +
                           covariance_[d] * covariance_factor / global_batch;
      squared_gradients_[d] = past * squared_gradients_[d] + (1 - past) * fresh;
      rate *=
          (1 - momentum) / (std::sqrt(squared_gradients_[d] / squared_gradients_weight_) + 1e-8);
    }
    // The velocity is in units of steps: it follows the rate.
    const double change = rates_[d] > 0 ? rate / rates_[d] : 0;
    moments_.xu[d] *= change;
    moments_.uu[d] *= change * change;
    rates_[d] = rate;
  }
}

double Quadratic::LearningRate(double global_batch) const {
  return optimizer_.LearningRate(global_batch, position_, MeasuredNoiseScale());
}

TrainingReport Quadratic::Run(const std::vector<int>& batches, int iterations) {
  int workers = 0;
  double global_batch = 0;
  for (const int batch : batches) {
    workers += batch > 0 ? 1 : 0;
    global_batch += batch;
  }
  DYNAMIX_CHECK(global_batch > 0 && iterations > 0, "a window has samples");

  const int dimensions = options_.dimensions;
  const Summary before = now_;
  const double half_window =
      0.5 * iterations * optimizer_.Advance(global_batch, MeasuredNoiseScale());
  position_ += half_window;  // the schedule at the window's middle
  const double learning_rate = LearningRate(global_batch);
  const double factor = CovarianceFactor(before.excess_loss);
  SetRates(learning_rate, global_batch, iterations, factor);

  const double edge = 2 * (1 + optimizer_.momentum);
  Vector a, q;
  for (int d = 0; d < dimensions; ++d) {
    a[d] = std::max(rates_[d] * curvature_[d], kTiny);
    if (std::abs(a[d] - edge) < 1e-9) a[d] = edge - 1e-9;  // S* has a pole there
    q[d] = rates_[d] * rates_[d] * covariance_[d] * factor / global_batch;
  }
  Powers powers;
  RaisePowers(powers, a.data(), optimizer_.momentum, iterations, dimensions);
  ApplyPowers(powers, a.data(), q.data(), optimizer_.momentum, dimensions, moments_.xx.data(),
              moments_.xu.data(), moments_.uu.data());
  now_ = Summarise();
  if (!(now_.excess_loss <= kLargestExcess * options_.initial_loss)) LimitDivergence();
  position_ += half_window;

  TrainingReport report = Measure(before, now_, workers, global_batch, iterations);
  report.learning_rate = learning_rate;
  report.progress = std::min(1.0, Progress());
  return report;
}

void Quadratic::LimitDivergence() {
  // Everything in the direction of largest curvature, at rest: finite, and as bad as it gets.
  moments_ = {};
  moments_.xx[0] = 2 * kLargestExcess * options_.initial_loss / curvature_[0];
  now_ = Summarise();
}

TrainingReport Quadratic::Measure(const Summary& before, const Summary& after, int workers,
                                  double global_batch, int iterations) {
  const double squared_norm = 0.5 * (before.squared_norm + after.squared_norm);
  const double trace = 0.5 * (before.trace + after.trace);
  const double mean_square = squared_norm + trace / global_batch;  // E|g|^2
  const double noise_part = trace / global_batch;
  const double variance =
      (4 * squared_norm * noise_part + 2 * noise_part * noise_part) / options_.noise_dimensions;
  const double measured_square =
      std::max(0.01, 1 + rng_.Normal() * std::sqrt(variance / iterations) / mean_square) *
      mean_square;
  if (workers > 1) {
    const double freedom = (workers - 1.0) * iterations;
    const double relative = std::sqrt(2 / (freedom * options_.noise_dimensions));
    const double measured_trace = trace * std::max(0.01, 1 + relative * rng_.Normal());
    RememberNoise(measured_trace, measured_square - measured_trace / global_batch, iterations);
  }

  const double loss = options_.irreducible_loss + 0.5 * (before.excess_loss + after.excess_loss);
  const double accuracy_before = Accuracy(before.excess_loss);
  const double accuracy_after = Accuracy(after.excess_loss);
  const double accuracy = 0.5 * (accuracy_before + accuracy_after);
  const double samples = global_batch * iterations;
  const double trend = accuracy_after - accuracy_before;
  const double accuracy_variance = accuracy * (1 - accuracy);
  TrainingReport report;
  // The deviation of one sample's loss is about the loss itself.
  report.loss = loss * std::max(0.01, 1 + rng_.Normal() / std::sqrt(samples));
  report.accuracy =
      std::clamp(accuracy + rng_.Normal() * std::sqrt(accuracy_variance / samples), 0.0, 1.0);
  report.accuracy_spread = std::sqrt(accuracy_variance / global_batch + trend * trend / 12) *
                           std::max(0.0, 1 + rng_.Normal() / std::sqrt(2.0 * iterations));
  report.gradient_norm = std::sqrt(measured_square);
  report.gradient_norm_spread = 0.5 * std::sqrt(variance / mean_square);
  report.noise_scale = workers > 1 ? MeasuredNoiseScale() : kMissing;
  return report;
}

void Quadratic::RememberNoise(double trace, double squared_norm, int iterations) {
  const double past = std::pow(kNoiseMemory, iterations);
  measured_trace_ = past * measured_trace_ + (1 - past) * trace;
  measured_squared_norm_ = past * measured_squared_norm_ + (1 - past) * squared_norm;
}

double Quadratic::MeasuredNoiseScale() const {
  // The correction for the start of the average cancels in the ratio.
  return measured_squared_norm_ > 0 ? measured_trace_ / measured_squared_norm_ : kMissing;
}

double Quadratic::ExcessLoss() const { return now_.excess_loss; }

double Quadratic::TrueNoiseScale() const { return now_.trace / now_.squared_norm; }

double Quadratic::Accuracy(double excess_loss) const {
  const double remaining = std::clamp(excess_loss / options_.initial_loss, 0.0, 1.0);
  return options_.best_accuracy - (options_.best_accuracy - options_.chance_accuracy) *
                                      std::pow(remaining, options_.accuracy_exponent);
}

double Quadratic::HeldOutLoss() {
  const double remaining = std::min(now_.excess_loss / options_.initial_loss, 1.0);
  return now_.excess_loss + options_.irreducible_loss + options_.held_out_gap * (1 - remaining);
}

double Quadratic::HeldOutAccuracy() { return Accuracy(now_.excess_loss); }

std::unique_ptr<Convergence> Quadratic::Clone() const { return std::make_unique<Quadratic>(*this); }

}  // namespace dynamix
