// Labels of the gaussian families, x being the scaled input:
//
//   teacher      z     = network(x), centred and scaled to deviation 1 over the training samples
//                label = argmax over classes of z / temperature + Gumbel noise,
//                        that is a draw from the softmax of z / temperature
//   prototypes   label = class of the point p with the largest x.p - |p|^2 / 2,
//                        that is of the nearest one; points are drawn like x
//
// Label noise then replaces a share of the labels by uniformly random ones.
#include "dynamix/simulator/miniatures/task.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string>

#include "dynamix/core/input_error.h"
#include "dynamix/core/rng.h"
#include "dynamix/simulator/miniatures/network.h"

namespace dynamix {
namespace {

using Samples = MiniatureTask::Samples;

enum Stream : std::uint64_t { kSubsetStream = 1, kLabelStream, kNoiseStream };

template <typename T>
void Shuffle(std::vector<T>& values, Rng& rng) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.Below(i)]);
}

const std::shared_ptr<const FeaturePool>& Pool(const MiniatureOptions& options,
                                               const MiniaturePools& pools) {
  const bool fashion = options.family == MiniatureFamily::kFashion;
  const auto& pool = fashion ? pools.fashion : pools.gaussian;
  if (!pool) {
    throw InputError("family = " + std::string(Name(options.family)) + " needs the " +
                     (fashion ? "fashion" : "gaussian") + " pool, which was not loaded");
  }
  RequireInRange("network.inputs", options.network.inputs, 1, pool->inputs);
  return pool;
}

AlignedFloats Scales(const MiniatureOptions& options, const FeaturePool& pool) {
  const int inputs = options.network.inputs;
  AlignedFloats scales(PadToLanes(inputs), 0.0f);
  double squares = 0;
  for (int d = 0; d < inputs; ++d)
    squares += std::pow(pool.deviations[d], 2 * options.spectrum) / inputs;
  for (int d = 0; d < inputs; ++d) {
    scales[d] =
        static_cast<float>(options.feature_scale * std::pow(pool.deviations[d], options.spectrum) /
                           std::sqrt(squares));
  }
  return scales;
}

// `count` random rows of [first, first + available), which `accept` keeps.
template <typename Accept>
std::vector<std::uint32_t> RandomRows(std::string_view field, int count, int first, int available,
                                      Rng& rng, const Accept& accept) {
  std::vector<std::uint32_t> rows;
  for (int row = first; row < first + available; ++row)
    if (accept(row)) rows.push_back(static_cast<std::uint32_t>(row));
  if (count > static_cast<int>(rows.size())) {
    throw InputError::OutOfRange(field, count,
                                 "at most " + std::to_string(rows.size()) + " rows of the pool");
  }
  Shuffle(rows, rng);
  rows.resize(count);
  return rows;
}

// Calls visit(index of the first sample, count, inputs) pass by pass.
template <typename Visit>
void ForEachPass(const MiniatureTask& task, const Samples& samples, const Visit& visit) {
  const int columns = static_cast<int>(task.scales.size());
  AlignedFloats inputs(static_cast<std::size_t>(MiniatureNetwork::kPass) * columns);
  const int count = static_cast<int>(samples.rows.size());
  for (int at = 0; at < count; at += MiniatureNetwork::kPass) {
    const int size = std::min(MiniatureNetwork::kPass, count - at);
    GatherScaled(size, columns, samples.rows.data() + at, task.pool->rows.data(), task.pool->stride,
                 task.scales.data(), inputs.data());
    visit(at, size, inputs.data());
  }
}

// `classes` scores per sample.
std::vector<float> TeacherLogits(const MiniatureOptions& options, const MiniatureTask& task,
                                 const Samples& samples, MiniatureNetwork& teacher) {
  const int classes = options.network.classes;
  std::vector<float> logits(samples.rows.size() * classes);
  ForEachPass(task, samples, [&](int at, int size, const float* inputs) {
    const float* rows = teacher.Forward(size, inputs);
    for (int i = 0; i < size; ++i)
      std::copy_n(rows + i * kLanes, classes, logits.data() + (at + i) * classes);
  });
  return logits;
}

void LabelByTeacher(const MiniatureOptions& options, MiniatureTask& task, Rng& rng) {
  const int classes = options.network.classes;
  MiniatureShape shape = options.network;
  shape.hidden = options.teacher_hidden;
  shape.second_hidden = 0;
  shape.activation = Activation::kTanh;
  MiniatureNetwork teacher(shape);
  const AlignedFloats parameters = teacher.RandomParameters(rng, 1.5);
  teacher.SetParameters(parameters);
  // The training samples set centre and deviation for both sets.
  std::vector<double> mean(classes, 0.0);
  double variance = 0;
  for (Samples* samples : {&task.training, &task.held_out}) {
    const std::vector<float> logits = TeacherLogits(options, task, *samples, teacher);
    const double count = static_cast<double>(samples->rows.size());
    if (samples == &task.training) {
      for (std::size_t i = 0; i < logits.size(); ++i) mean[i % classes] += logits[i] / count;
      for (std::size_t i = 0; i < logits.size(); ++i)
        variance += std::pow(logits[i] - mean[i % classes], 2) / (count * classes);
    }
    const double sharpness = 1 / (options.temperature * std::sqrt(std::max(variance, 1e-12)));
    for (std::size_t s = 0; s < samples->rows.size(); ++s) {
      double best = -1e300;
      for (int c = 0; c < classes; ++c) {
        const double gumbel = -std::log(-std::log(1 - rng.Uniform()) + 1e-300);
        const double score = (logits[s * classes + c] - mean[c]) * sharpness + gumbel;
        if (score <= best) continue;
        best = score;
        samples->labels[s] = static_cast<std::uint8_t>(c);
      }
    }
  }
}

void LabelByPrototypes(const MiniatureOptions& options, MiniatureTask& task, Rng& rng) {
  const int inputs = options.network.inputs, classes = options.network.classes;
  const int points = classes * options.prototypes, stride = PadToLanes(points);
  AlignedFloats matrix(static_cast<std::size_t>(inputs) * stride, 0.0f), start(stride, 0.0f);
  for (int d = 0; d < inputs; ++d) {
    for (int p = 0; p < points; ++p) {
      const float value = static_cast<float>(task.scales[d] * rng.Normal());
      matrix[d * stride + p] = value;
      start[p] -= 0.5f * value * value;
    }
  }
  AlignedFloats scores(static_cast<std::size_t>(MiniatureNetwork::kPass) * stride);
  const int input_stride = static_cast<int>(task.scales.size());
  for (Samples* samples : {&task.training, &task.held_out}) {
    ForEachPass(task, *samples, [&](int at, int size, const float* rows) {
      Multiply(size, stride, inputs, {rows, input_stride, 1}, matrix.data(), stride, start.data(),
               0, scores.data(), stride);
      for (int i = 0; i < size; ++i) {
        const float* row = scores.data() + i * stride;
        const auto nearest = std::max_element(row, row + points) - row;
        samples->labels[at + i] = static_cast<std::uint8_t>(nearest % classes);
      }
    });
  }
}

void AddLabelNoise(double share, int classes, Samples& samples, Rng& rng) {
  for (std::uint8_t& label : samples.labels) {
    const bool replace = rng.Uniform() < share;
    const auto other = static_cast<std::uint8_t>(rng.Below(classes));
    if (replace) label = other;
  }
}

}  // namespace

MiniatureTask MakeMiniatureTask(const MiniatureOptions& options, const MiniaturePools& pools) {
  options.Validate();
  MiniatureTask task;
  task.pool = Pool(options, pools);
  const FeaturePool& pool = *task.pool;
  task.scales = Scales(options, pool);
  const Rng rng(options.task_seed);
  Rng subset = rng.Fork(kSubsetStream), labels = rng.Fork(kLabelStream);
  const int classes = options.network.classes;
  // Fashion with fewer classes than 10 keeps a random choice of them; class_of[original] is the new
  // label.
  std::vector<int> class_of(std::max(10, classes));
  std::iota(class_of.begin(), class_of.end(), 0);
  if (options.family == MiniatureFamily::kFashion) Shuffle(class_of, labels);
  const auto accept = [&](int row) {
    return pool.labels.empty() || class_of[pool.labels[row]] < classes;
  };
  task.training.rows = RandomRows("training_samples", options.training_samples, 0,
                                  pool.training_count, subset, accept);
  task.held_out.rows = RandomRows("held_out_samples", options.held_out_samples, pool.training_count,
                                  pool.held_out_count, subset, accept);
  for (Samples* samples : {&task.training, &task.held_out}) {
    samples->labels.resize(samples->rows.size());
    if (pool.labels.empty()) continue;
    for (std::size_t s = 0; s < samples->rows.size(); ++s)
      samples->labels[s] = static_cast<std::uint8_t>(class_of[pool.labels[samples->rows[s]]]);
  }
  if (options.family == MiniatureFamily::kTeacher) LabelByTeacher(options, task, labels);
  if (options.family == MiniatureFamily::kPrototypes) LabelByPrototypes(options, task, labels);
  Rng noise = rng.Fork(kNoiseStream);
  AddLabelNoise(options.label_noise, classes, task.training, noise);
  AddLabelNoise(options.label_noise, classes, task.held_out, noise);
  return task;
}

}  // namespace dynamix
