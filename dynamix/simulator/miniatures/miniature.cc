// One iteration over local batches b_i, with B = sum_i b_i, by the rules of a live job
// (docs/training.md):
//
//   s_i  = sum over worker i's samples of the loss gradient
//   s    = sum_i s_i
//   g    = s / B
//   rate = base learning rate
//        * ScheduleFactor(position of its clock / planned samples)
//        * LearningRateFactor(rule, B, base batch, noise scale)
//
//   SGD    v := momentum v + g
//          w := w - rate v
//   Adam   as Kingma and Ba 2015, beta1 = momentum, beta2 = 0.999, epsilon = 1e-8
//   AdamW  w := (1 - rate decay) w, then as Adam (Loshchilov and Hutter 2019)
//
// Every noise_every-th iteration, EstimateNoise(sum_i |s_i|^2 / b_i, |g|^2, B, workers) enters the
// noise scale.
#include "dynamix/simulator/miniatures/miniature.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {
namespace {

constexpr double kNoiseMemory = 0.95;  // per iteration

enum Stream : std::uint64_t { kParameterStream = 101, kOrderStream };

// A sample of the order: its row in the pool and its label in one word, so that reading it is one
// access.
std::vector<std::uint32_t> Encode(const MiniatureTask::Samples& samples) {
  std::vector<std::uint32_t> words(samples.rows.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    DYNAMIX_CHECK(samples.rows[i] < 1u << 24, "a row number has 24 bits");
    words[i] = samples.rows[i] << 8 | samples.labels[i];
  }
  return words;
}

}  // namespace

Miniature::Miniature(const MiniatureOptions& options, const MiniaturePools& pools)
    : options_(options),
      task_(std::make_shared<const MiniatureTask>(MakeMiniatureTask(options, pools))),
      network_(options.network),
      order_(Encode(task_->training), Rng(options.seed).Fork(kOrderStream)),
      noise_scale_(std::pow(kNoiseMemory, options.noise_every)),
      gradient_(network_.parameter_count(), 0.0f),
      part_(network_.parameter_count(), 0.0f),
      first_moment_(network_.parameter_count(), 0.0f),
      inputs_(static_cast<std::size_t>(MiniatureNetwork::kPass) * network_.input_stride()),
      rows_(MiniatureNetwork::kPass),
      labels_(MiniatureNetwork::kPass) {
  Rng rng = Rng(options.seed).Fork(kParameterStream);
  parameters_ = network_.RandomParameters(rng, options.initial_scale);
  if (options.optimizer.adaptive()) second_moment_.assign(parameters_.size(), 0.0f);
}

TrainingReport Miniature::Run(const std::vector<int>& batches, int iterations) {
  const std::vector<int> groups = GroupWorkers(batches, kMostGroups);
  int global_batch = 0;
  for (const int size : groups) global_batch += size;
  evaluated_ = false;
  WindowStatistics window;
  for (int i = 0; i < iterations; ++i) {
    if (!diverged_) Iterate(groups, global_batch, window);
    position_ += options_.optimizer.Advance(global_batch, noise_scale_.value());
    samples_seen_ += global_batch;
    ++iterations_;
  }
  if (diverged_) return WindowStatistics().Make(kMissing, Progress());
  // One worker cannot tell noise from signal, and what it knew before it was alone grows old.
  return window.Make(groups.size() > 1 ? noise_scale_.value() : kMissing, Progress());
}

void Miniature::Iterate(const std::vector<int>& groups, int global_batch,
                        WindowStatistics& window) {
  network_.SetParameters(parameters_);
  std::fill(gradient_.begin(), gradient_.end(), 0.0f);
  const int size = network_.parameter_count();
  const bool apart = groups.size() > 1 && iterations_ % options_.noise_every == 0;
  LossSum sum;
  double weighted_squared_norms = 0;
  if (apart) {
    for (const int count : groups) {
      std::fill(part_.begin(), part_.end(), 0.0f);
      const LossSum more = AddGradient(count, part_.data());
      sum.loss += more.loss;
      sum.correct += more.correct;
      weighted_squared_norms += SquaredNormAndAdd(size, part_.data(), gradient_.data()) / count;
    }
  } else {
    sum = AddGradient(global_batch, gradient_.data());
  }
  const double batch = global_batch;
  const double squared_norm = SquaredNorm(size, gradient_.data()) / (batch * batch);
  if (!std::isfinite(sum.loss) || !std::isfinite(squared_norm)) {
    diverged_ = true;
    return;
  }
  if (apart) {
    noise_scale_.Add(EstimateNoise(weighted_squared_norms, squared_norm, batch,
                                   static_cast<int>(groups.size())));
  }
  const double rate = options_.optimizer.LearningRate(batch, position_, noise_scale_.value());
  Step(1 / batch, rate);
  window.Add(sum.loss / batch, sum.correct / batch, std::sqrt(squared_norm), rate);
}

LossSum Miniature::AddGradient(int count, float* gradient) {
  const FeaturePool& pool = *task_->pool;
  LossSum sum;
  for (int done = 0; done < count; done += MiniatureNetwork::kPass) {
    const int size = std::min(MiniatureNetwork::kPass, count - done);
    int at = 0;
    order_.Take(size, [&](std::uint32_t sample) {
      rows_[at] = sample >> 8;
      labels_[at++] = static_cast<std::uint8_t>(sample);
    });
    // Rows lie scattered in a pool larger than the caches: ask for the next ones while these are
    // worked on.
    for (const std::uint32_t sample : order_.Peek(size)) {
      const std::uint16_t* row =
          pool.rows.data() + (sample >> 8) * static_cast<std::size_t>(pool.stride);
      for (int d = 0; d < network_.input_stride(); d += 2 * kLanes)
        __builtin_prefetch(row + d, 0, 2);
    }
    GatherScaled(size, network_.input_stride(), rows_.data(), pool.rows.data(), pool.stride,
                 task_->scales.data(), inputs_.data());
    const LossSum more = network_.AddGradient(size, inputs_.data(), labels_.data(), gradient);
    sum.loss += more.loss;
    sum.correct += more.correct;
  }
  return sum;
}

void Miniature::Step(double gradient_scale, double learning_rate) {
  const OptimizerOptions& optimizer = options_.optimizer;
  const int size = network_.parameter_count();
  if (!optimizer.adaptive()) {
    SgdStep(size, gradient_.data(), static_cast<float>(gradient_scale),
            static_cast<float>(learning_rate), static_cast<float>(optimizer.momentum),
            first_moment_.data(), parameters_.data());
    return;
  }
  const AdamFactors factors =
      MakeAdamFactors(learning_rate, optimizer.momentum, optimizer.weight_decay,
                      static_cast<double>(iterations_ + 1));
  AdamStep(size, gradient_.data(), static_cast<float>(gradient_scale), factors,
           first_moment_.data(), second_moment_.data(), parameters_.data());
}

void Miniature::EvaluateHeldOut() {
  if (evaluated_) return;
  evaluated_ = true;
  held_out_loss_ = kWorstLoss;
  held_out_accuracy_ = 1.0 / options_.network.classes;
  if (diverged_) return;
  const MiniatureTask::Samples& samples = task_->held_out;
  const int count = static_cast<int>(samples.rows.size());
  network_.SetParameters(parameters_);
  LossSum sum;
  for (int done = 0; done < count; done += MiniatureNetwork::kPass) {
    const int size = std::min(MiniatureNetwork::kPass, count - done);
    GatherScaled(size, network_.input_stride(), samples.rows.data() + done,
                 task_->pool->rows.data(), task_->pool->stride, task_->scales.data(),
                 inputs_.data());
    const LossSum more = network_.Evaluate(size, inputs_.data(), samples.labels.data() + done);
    sum.loss += more.loss;
    sum.correct += more.correct;
  }
  if (!std::isfinite(sum.loss)) return;
  held_out_loss_ = std::min(kWorstLoss, sum.loss / count);
  held_out_accuracy_ = static_cast<double>(sum.correct) / count;
}

double Miniature::HeldOutLoss() {
  EvaluateHeldOut();
  return held_out_loss_;
}

double Miniature::HeldOutAccuracy() {
  EvaluateHeldOut();
  return held_out_accuracy_;
}

std::unique_ptr<Convergence> Miniature::Clone() const { return std::make_unique<Miniature>(*this); }

}  // namespace dynamix
