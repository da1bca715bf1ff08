#include "dynamix/job/quadratic_options.h"

#include <string>

#include "dynamix/core/input_error.h"
#include "dynamix/job/toml_file.h"

namespace dynamix {

void VisitFields(TomlFields& fields, QuadraticOptions& o) {
  fields.Integer("dimensions", o.dimensions, 1, kMaxQuadraticDimensions);
  fields.Number("curvature", o.curvature, 1e-9, 1e6);
  fields.Number("curvature_decay", o.curvature_decay, 0, 4);
  fields.Number("initial_loss", o.initial_loss, 1e-9, 1e6);
  fields.Number("loss_decay", o.loss_decay, -4, 4);
  fields.Number("noise_scale", o.noise_scale, 1e-9, 1e9);
  fields.Number("noise_floor", o.noise_floor, 0, 1);
  fields.Number("noise_dimensions", o.noise_dimensions, 1, 1e9);
  fields.Number("irreducible_loss", o.irreducible_loss, 0, 1e6);
  fields.Number("held_out_gap", o.held_out_gap, 0, 1e6);
  fields.Number("chance_accuracy", o.chance_accuracy, 0, 1);
  fields.Number("best_accuracy", o.best_accuracy, 0, 1);
  fields.Number("accuracy_exponent", o.accuracy_exponent, 0.01, 4);
}

void QuadraticOptions::Validate(std::string_view field) const {
  if (best_accuracy > chance_accuracy) return;
  throw InputError::OutOfRange(std::string(field) + ".best_accuracy", best_accuracy,
                               "a value above chance_accuracy");
}

}  // namespace dynamix
