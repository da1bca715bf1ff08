// Saving and restoring a worker, and what else ranks share between iterations.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <bit>
#include <type_traits>

#include "dynamix/core/input_error.h"
#include "dynamix/training/worker.h"

namespace dynamix {
namespace {

static_assert(std::is_trivially_copyable_v<NoiseScale> &&
                  sizeof(NoiseScale) == sizeof(std::array<double, 4>),
              "a checkpoint stores the noise scale's four numbers");

std::vector<float> CopyOf(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  const float* data = flat.data_ptr<float>();
  return {data, data + flat.numel()};
}

void CopyInto(const std::string& what, const std::vector<float>& from, at::Tensor to) {
  const at::NoGradGuard no_grad;
  if (static_cast<std::int64_t>(from.size()) != to.numel()) {
    throw InputError("the checkpoint's " + what + " has " + std::to_string(from.size()) +
                     " numbers, this job's " + std::to_string(to.numel()));
  }
  to.copy_(at::from_blob(const_cast<float*>(from.data()), to.sizes(), at::kFloat));
}

}  // namespace

Status Worker::AverageBuffers() {
  if (trainable_.buffers.empty() || group_.size() == 1) return Nothing{};
  const at::NoGradGuard no_grad;
  const double total = [&] {
    double sum = 0;
    for (const int batch : batches_) sum += batch;
    return sum;
  }();
  const double weight = batches_[group_.rank()] / total;
  for (at::Tensor& buffer : trainable_.buffers) {
    const at::Tensor mean = (buffer.to(at::kDouble) * weight).contiguous();
    const std::span<double> values(mean.data_ptr<double>(), mean.numel());
    if (Status status = group_.AllReduce(values); !status) return status;
    buffer.copy_(mean);
  }
  return Nothing{};
}

Result<WorkerState> Worker::Save() {
  if (Status status = AverageBuffers(); !status) return Error{status.error()};
  const double own[] = {static_cast<double>(bounds_.max), static_cast<double>(micro_batch_)};
  std::vector<double> all(2 * group_.size());
  if (Status status = group_.AllGather(own, all); !status) return Error{status.error()};
  WorkerState state;
  state.cursor = sampler_.cursor();
  state.optimizer_steps = optimizer_.steps();
  state.iterations = iterations_;
  state.windows = windows_;
  state.batches.assign(batches_.begin(), batches_.end());
  state.start_batches.assign(start_batches_.begin(), start_batches_.end());
  for (int rank = 0; rank < group_.size(); ++rank) {
    state.highest.push_back(all[2 * rank]);
    state.micro_batches.push_back(all[2 * rank + 1]);
  }
  state.noise_scale = std::bit_cast<std::array<double, 4>>(noise_scale_);
  state.statistics = statistics_.Save();
  state.timing = {static_cast<double>(timing_.iterations), timing_.iteration_ms, timing_.compute_ms,
                  timing_.wait_ms, timing_.communication_ms};
  state.parameters = parameters_.CopyValues();
  for (const at::Tensor& part : optimizer_.state()) state.optimizer.push_back(CopyOf(part));
  for (const at::Tensor& buffer : trainable_.buffers) state.buffers.push_back(CopyOf(buffer));
  return state;
}

void Worker::Restore(const WorkerState& state) {
  const auto ranks = static_cast<std::size_t>(group_.size());
  if (state.batches.size() != ranks)
    throw InputError("the checkpoint is of " + std::to_string(state.batches.size()) +
                     " ranks, this job has " + std::to_string(ranks));
  if (state.optimizer.size() != optimizer_.state().size() ||
      state.buffers.size() != trainable_.buffers.size())
    throw InputError("the checkpoint is of another optimizer or model");
  CopyInto("weights", state.parameters, parameters_.values());
  for (std::size_t i = 0; i < state.optimizer.size(); ++i)
    CopyInto("optimizer state", state.optimizer[i], optimizer_.state()[i]);
  for (std::size_t i = 0; i < state.buffers.size(); ++i)
    CopyInto("statistics", state.buffers[i], trainable_.buffers[i]);
  optimizer_.set_steps(state.optimizer_steps);
  sampler_ = Sampler(trainable_.samples, options_.seed, state.cursor);
  noise_scale_ = std::bit_cast<NoiseScale>(state.noise_scale);
  batches_.assign(state.batches.begin(), state.batches.end());
  start_batches_.assign(state.start_batches.begin(), state.start_batches.end());
  bounds_.max = static_cast<int>(state.highest[group_.rank()]);
  micro_batch_ = static_cast<int>(state.micro_batches[group_.rank()]);
  statistics_.Restore(state.statistics);
  timing_ = {static_cast<int>(state.timing[0]), state.timing[1], state.timing[2], state.timing[3],
             state.timing[4]};
  iterations_ = state.iterations;
  windows_ = state.windows;
}

}  // namespace dynamix
