// One iteration over local batches b_i, with B = sum_i b_i (docs/training.md):
//
//   s_i   = sum over worker i's samples of the loss gradient
//   s     = sum_i s_i
//   g     = s / B
//   noise = EstimateNoise(sum_i |s_i|^2 / b_i, |g|^2, B, workers)
//
// and one step of the optimizer on g, at the learning rate of B and of the samples seen.
#include "dynamix/training/real_convergence.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/rng.h"

namespace dynamix {
namespace {

constexpr double kNoiseMemory = 0.95;  // per iteration

enum Stream : std::uint64_t { kWeightStream = 201, kOrderStream, kAugmentationStream };

std::uint64_t Seed(std::uint64_t seed, Stream stream) { return Rng(seed).Fork(stream).Next(); }

}  // namespace

RealConvergence::RealConvergence(const RealConvergenceOptions& options,
                                 std::shared_ptr<const Dataset> data)
    : options_(options),
      data_(std::move(data)),
      classifier_(options.model,
                  BatchReader(data_, options.augmentation, Seed(options.seed, kAugmentationStream)),
                  Seed(options.seed, kWeightStream)),
      parameters_(classifier_.parameters()),
      optimizer_(options.optimizer, parameters_),
      sampler_(data_->training.count(), Seed(options.seed, kOrderStream)),
      noise_scale_(std::pow(kNoiseMemory, options.noise_every)) {
  RequireInRange("held_out_samples", options.held_out_samples, 1, data_->held_out.count());
  RequireInRange("noise_every", options.noise_every, 1, 100);
  RequireInRange("most_groups", options.most_groups, 2, 4096);
  RequireInRange("norm_groups", options.norm_groups, 2, 4096);
  RequireInRange("largest_pass", options.largest_pass, 1, 1 << 20);
}

RealConvergence::~RealConvergence() = default;

TrainingReport RealConvergence::Run(const std::vector<int>& batches, int iterations) {
  // OpenMP keeps its number of threads per calling thread; jobs run in threads of their own.
  at::init_num_threads();
  const bool norm = classifier_.model().has_batch_norm;
  const std::vector<int> parts =
      GroupWorkers(batches, norm ? options_.norm_groups : options_.most_groups);
  int global_batch = 0;
  for (const int part : parts) global_batch += part;
  evaluated_ = false;
  WindowStatistics window;
  for (int i = 0; i < iterations; ++i) {
    if (!diverged_) Iterate(parts, global_batch, window);
    position_ += options_.optimizer.Advance(global_batch, noise_scale_.value());
    sampler_.Advance(parts);
    ++iterations_;
  }
  if (diverged_) return WindowStatistics().Make(kMissing, Progress());
  // One worker cannot tell noise from signal, and what it knew before it was alone grows old.
  return window.Make(parts.size() > 1 ? noise_scale_.value() : kMissing, Progress());
}

void RealConvergence::Iterate(const std::vector<int>& parts, int global_batch,
                              WindowStatistics& window) {
  PassSums sums;
  double weighted_squared_norms = kMissing;
  const bool apart = parts.size() > 1 && iterations_ % options_.noise_every == 0;
  parameters_.ZeroGradients();
  if (apart || classifier_.model().has_batch_norm) {
    weighted_squared_norms = AddGradientsApart(parts, sums);
  } else {
    AddGradient(sampler_.cursor(), global_batch, sums);
  }
  const double batch = sums.samples;
  const double squared_norm = parameters_.SquaredGradientNorm() / (batch * batch);
  if (!std::isfinite(sums.loss) || !std::isfinite(squared_norm)) {
    diverged_ = true;
    return;
  }
  if (apart) {
    noise_scale_.Add(
        EstimateNoise(weighted_squared_norms, squared_norm, batch, static_cast<int>(parts.size())));
  }
  const double rate = options_.optimizer.LearningRate(batch, position_, noise_scale_.value());
  optimizer_.Step(batch, rate);
  window.Add(sums.loss / batch, sums.correct / batch, std::sqrt(squared_norm), rate);
}

void RealConvergence::AddGradient(std::int64_t position, int count, PassSums& sums) {
  for (int done = 0; done < count; done += options_.largest_pass) {
    const int size = std::min(options_.largest_pass, count - done);
    const std::vector<Sample> samples = sampler_.At(position + done, size);
    at::Tensor loss = classifier_.Forward(samples, sums);
    loss.backward();
    sums.loss += loss.item<double>();
  }
}

double RealConvergence::AddGradientsApart(const std::vector<int>& parts, PassSums& sums) {
  std::vector<at::Tensor> total;
  for (const at::Tensor& gradient : parameters_.gradients())
    total.push_back(at::zeros_like(gradient));
  double weighted_squared_norms = 0;
  std::int64_t position = sampler_.cursor();
  for (const int part : parts) {
    parameters_.ZeroGradients();
    AddGradient(position, part, sums);
    position += part;
    weighted_squared_norms += parameters_.SquaredGradientNorm() / part;
    for (std::size_t b = 0; b < total.size(); ++b) total[b].add_(parameters_.gradients()[b]);
  }
  const at::NoGradGuard no_grad;
  for (std::size_t b = 0; b < total.size(); ++b) {
    at::Tensor gradient = parameters_.gradients()[b];
    gradient.copy_(total[b]);
  }
  return weighted_squared_norms;
}

void RealConvergence::EvaluateHeldOut() {
  if (evaluated_) return;
  evaluated_ = true;
  const PassSums sums = classifier_.Evaluate(0, options_.held_out_samples);
  const double loss = sums.loss / sums.samples;
  const bool finite = !diverged_ && std::isfinite(loss);
  held_out_loss_ = finite ? std::min(loss, kWorstLoss) : kWorstLoss;
  held_out_accuracy_ = finite ? sums.correct / sums.samples : 1.0 / data_->classes;
}

double RealConvergence::HeldOutLoss() {
  EvaluateHeldOut();
  return held_out_loss_;
}

double RealConvergence::HeldOutAccuracy() {
  EvaluateHeldOut();
  return held_out_accuracy_;
}

std::unique_ptr<Convergence> RealConvergence::Clone() const {
  const at::NoGradGuard no_grad;
  auto copy = std::make_unique<RealConvergence>(options_, data_);
  at::Tensor values = copy->parameters_.values();
  values.copy_(parameters_.values());
  for (std::size_t i = 0; i < optimizer_.state().size(); ++i) {
    at::Tensor state = copy->optimizer_.state()[i];
    state.copy_(optimizer_.state()[i]);
  }
  copy->optimizer_.set_steps(optimizer_.steps());
  const std::vector<at::Tensor> from = classifier_.buffers(), to = copy->classifier_.buffers();
  for (std::size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  copy->sampler_ = sampler_;
  copy->noise_scale_ = noise_scale_;
  copy->iterations_ = iterations_;
  copy->position_ = position_;
  copy->diverged_ = diverged_;
  copy->evaluated_ = evaluated_;
  copy->held_out_loss_ = held_out_loss_;
  copy->held_out_accuracy_ = held_out_accuracy_;
  return copy;
}

}  // namespace dynamix
