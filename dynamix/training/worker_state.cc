// Saving and restoring a worker, and what else ranks share between iterations.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <type_traits>

#include "dynamix/core/input_error.h"
#include "dynamix/host/failpoint.h"
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
  DYNAMIX_FAILPOINT("saving");
  const double own[] = {static_cast<double>(bounds_.max), static_cast<double>(micro_batch_)};
  std::vector<double> all(2 * group_.size());
  if (Status status = group_.AllGather(own, all); !status) return Error{status.error()};
  WorkerState state = Snapshot();
  for (auto* numbers : {&state.batches, &state.start_batches, &state.highest, &state.micro_batches})
    numbers->assign(group_.slots(), 0.0);
  for (int rank = 0; rank < group_.size(); ++rank) {
    const int slot = group_.members()[rank];
    state.batches[slot] = batches_[rank];
    state.start_batches[slot] = start_batches_[rank];
    state.highest[slot] = all[2 * rank];
    state.micro_batches[slot] = all[2 * rank + 1];
  }
  return state;
}

WorkerState Worker::Snapshot() const {
  WorkerState state;
  state.cursor = sampler_.cursor();
  state.schedule_position = schedule_position_;
  state.optimizer_steps = optimizer_.steps();
  state.iterations = iterations_;
  state.windows = windows_;
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
  RestoreShared(state);
  const auto ranks = static_cast<std::size_t>(group_.size());
  const auto saved = [&](std::size_t rank) {
    return rank < state.batches.size() && state.batches[rank] > 0;
  };
  std::vector<double> weights, starts;
  std::vector<BatchBounds> bounds(ranks, options_.bounds);
  bool same = true;
  for (std::size_t slot = ranks; slot < state.batches.size(); ++slot) same = same && !saved(slot);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    weights.push_back(saved(rank) ? state.batches[rank] : 0.0);
    if (saved(rank)) bounds[rank].max = static_cast<int>(state.highest[rank]);
    starts.push_back(saved(rank) ? state.start_batches[rank] : 0.0);
    same = same && saved(rank);
  }
  const std::size_t own = group_.rank();
  job_start_ = std::accumulate(state.start_batches.begin(), state.start_batches.end(), 0.0);
  bounds_.max = bounds[own].max;
  if (saved(own)) micro_batch_ = static_cast<int>(state.micro_batches[own]);
  batches_.assign(weights.begin(), weights.end());
  start_batches_.assign(starts.begin(), starts.end());
  start_batch_ = start_batches_[own];
  if (same) return;
  // Other ranks share the same global batch, and the same start, in a window of their own.
  const double global_batch = std::accumulate(state.batches.begin(), state.batches.end(), 0.0);
  batches_ = Share(global_batch, weights, bounds);
  start_batches_ = Share(job_start_, starts, bounds);
  start_batch_ = start_batches_[own];
  timing_ = {};
  statistics_ = {};
  advice_is_old_ = true;
}

void Worker::RestoreShared(const WorkerState& state) {
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
  schedule_position_ = state.schedule_position;
  noise_scale_ = std::bit_cast<NoiseScale>(state.noise_scale);
  statistics_.Restore(state.statistics);
  timing_ = {static_cast<int>(state.timing[0]), state.timing[1], state.timing[2], state.timing[3],
             state.timing[4]};
  iterations_ = state.iterations;
  windows_ = state.windows;
}

void Worker::KeepBuffers() {
  kept_buffers_.clear();
  if (!group_.elastic()) return;
  for (const at::Tensor& buffer : trainable_.buffers) kept_buffers_.push_back(CopyOf(buffer));
}

// A forward pass moves batch norm's statistics; that of a dropped iteration must not.
void Worker::PutBackBuffers() {
  for (std::size_t i = 0; i < kept_buffers_.size(); ++i)
    CopyInto("statistics", kept_buffers_[i], trainable_.buffers[i]);
}

}  // namespace dynamix
