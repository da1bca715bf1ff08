// The constants of the noisy quadratic model: how a simulated job converges. Equations and sources
// head simulator/quadratic.cc. A plain value.
#pragma once

#include <string_view>

namespace dynamix {

inline constexpr int kMaxQuadraticDimensions = 64;

class TomlFields;

struct QuadraticOptions {
  int dimensions = 32;           // eigendirections of the Hessian, [1, 64]
  double curvature = 1.0;        // largest eigenvalue h_1, (0, 1e6]
  double curvature_decay = 2.0;  // h_d = curvature * d^-decay, [0, 4]
  double initial_loss = 2.2;     // excess loss at the start, (0, 1e6]
  double loss_decay = 0.6;       // direction d holds a part ~ d^-decay of initial_loss, [-4, 4]
  double noise_scale = 60;       // tr(C) / |G|^2 at the start, in samples, (0, 1e9]
  // Part of the gradient covariance that stays when the excess loss is gone, [0, 1]. 1: constant
  // covariance, as in the paper.
  double noise_floor = 0.1;
  // tr(C)^2 / tr(C^2) of the measured gradients, [1, 1e9]. Sets how noisy estimates of gradient
  // norms and noise scale are, nothing else; about 25 looks like miniatures do.
  double noise_dimensions = 25;
  double irreducible_loss = 0.1;  // training loss at the minimum, [0, 1e6]
  double held_out_gap = 0.1;      // held-out minus training loss at the minimum, [0, 1e6]

  // accuracy = best - (best - chance) * (excess loss / initial loss)^exponent
  double chance_accuracy = 0.1;    // at the initial loss, [0, 1)
  double best_accuracy = 0.95;     // at the minimum, (chance_accuracy, 1]
  double accuracy_exponent = 0.8;  // (0, 4]

  // What ranges of single fields cannot say. Throws InputError naming `field`.
  void Validate(std::string_view field) const;
};

void VisitFields(TomlFields& fields, QuadraticOptions& options);

}  // namespace dynamix
