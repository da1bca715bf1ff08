#include "dynamix/training/optimizer.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "dynamix/core/check.h"
#include "dynamix/training/parameters.h"

namespace dynamix {
namespace {

constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, Parameters& parameters)
    : options_(options), parameters_(parameters) {
  const int parts = options.adaptive() ? 2 : options.momentum > 0 ? 1 : 0;
  for (int part = 0; part < parts; ++part) {
    state_.push_back(at::zeros({parameters.count()}, at::kFloat));
    std::int64_t offset = 0;
    std::vector<at::Tensor>& views = bucket_state_.emplace_back();
    for (const at::Tensor& values : parameters.bucket_values()) {
      views.push_back(state_.back().narrow(0, offset, values.numel()));
      offset += values.numel();
    }
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::Step(double samples, double learning_rate) {
  DYNAMIX_CHECK(samples > 0, "a step needs samples");
  const at::NoGradGuard no_grad;
  ++steps_;
  for (std::size_t bucket = 0; bucket < parameters_.gradients().size(); ++bucket) {
    if (options_.adaptive()) {
      StepAdam(bucket, 1 / samples, learning_rate);
    } else {
      StepSgd(bucket, 1 / samples, learning_rate);
    }
  }
}

void Optimizer::StepSgd(std::size_t bucket, double scale, double learning_rate) {
  at::Tensor values = parameters_.bucket_values()[bucket];
  const at::Tensor& gradient = parameters_.gradients()[bucket];
  if (bucket_state_.empty()) {
    values.add_(gradient, -learning_rate * scale);
    return;
  }
  at::Tensor& velocity = bucket_state_[0][bucket];
  velocity.mul_(options_.momentum).add_(gradient, scale);
  values.add_(velocity, -learning_rate);
}

void Optimizer::StepAdam(std::size_t bucket, double scale, double learning_rate) {
  at::Tensor values = parameters_.bucket_values()[bucket];
  const at::Tensor& gradient = parameters_.gradients()[bucket];
  at::Tensor& first = bucket_state_[0][bucket];
  at::Tensor& second = bucket_state_[1][bucket];
  const auto steps = static_cast<double>(steps_);
  const double first_correction = 1 - std::pow(options_.momentum, steps);
  const double second_correction = 1 - std::pow(kBeta2, steps);
  first.mul_(options_.momentum).add_(gradient, (1 - options_.momentum) * scale);
  second.mul_(kBeta2).addcmul_(gradient, gradient, (1 - kBeta2) * scale * scale);
  const at::Tensor root = second.sqrt().mul_(1 / std::sqrt(second_correction)).add_(kEpsilon);
  if (options_.weight_decay > 0) values.mul_(1 - learning_rate * options_.weight_decay);
  values.addcdiv_(first, root, -learning_rate / first_correction);
}

}  // namespace dynamix
