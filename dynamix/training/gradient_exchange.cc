#include "dynamix/training/gradient_exchange.h"

#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/training/breakable_group.h"
#include "dynamix/training/parameters.h"
#include "dynamix/training/worker_group.h"

namespace dynamix {
namespace {

using Future = BreakableGroup::Future;

// The stamp outlives the exchange when a late collective completes after a failure: shared with it.
using Stamp = std::shared_ptr<Clock::time_point>;

double SquaredNorm(const at::Tensor& flat) { return at::dot(flat, flat).item<double>(); }

}  // namespace

struct GradientExchange::State {
  struct Hook;

  State(WorkerGroup& all, Parameters& own, std::size_t length)
      : parameters(own),
        tail(at::zeros({static_cast<std::int64_t>(length)}, at::kDouble)),
        together(std::make_shared<Clock::time_point>()) {
    if (all.process_group() != nullptr)
      group = c10::intrusive_ptr<BreakableGroup>::reclaim_copy(all.process_group());
  }

  // Sends a complete bucket; before the last one, the tail.
  Future Send(std::size_t bucket, at::Tensor& buffer);
  void Ready();
  void MakeReducer();
  void Begin(OnReady on_ready);

  Parameters& parameters;
  c10::intrusive_ptr<BreakableGroup> group;
  std::unique_ptr<c10d::Reducer> reducer;
  at::Tensor tail;
  Future tail_sent;
  OnReady on_ready;
  double squared_norm = 0;
  bool sending = false;
  // Of the iteration under way, in order. Their buffers hold sums once the futures are complete.
  std::vector<Future> sent;
  std::vector<at::Tensor> sent_buffers;
  Clock::time_point ready;
  Stamp together;
};

// c10d::Reducer calls it for each bucket, in order, as backward completes them.
struct GradientExchange::State::Hook : c10d::CommHookInterface {
  // Borrowed from the exchange, which owns the reducer and so the hook.
  explicit Hook(State& owner) : state(owner) {}
  Future runHook(c10d::GradBucket& bucket) override {
    return state.Send(bucket.getIndex(), bucket.getBufferRef());
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return result.toTensorVector()[0];
  }
  State& state;
};

void GradientExchange::State::Ready() {
  on_ready(squared_norm);
  ready = *together = Clock::now();
}

Future GradientExchange::State::Send(std::size_t bucket, at::Tensor& buffer) {
  sending = true;
  squared_norm += SquaredNorm(buffer);
  if (bucket + 1 == parameters.buckets().size()) {
    Ready();
    std::vector<at::Tensor> tails = {tail};
    const auto work = group->allreduce(tails);
    // Before Completed's: whoever waits for that reads the stamp.
    work->getFuture()->addCallback(
        [stamp = together](c10::ivalue::Future&) { *stamp = Clock::now(); });
    tail_sent = group->Completed(work);
  }
  std::vector<at::Tensor> buffers = {buffer};
  sent.push_back(group->Completed(group->allreduce(buffers)));
  sent_buffers.push_back(buffer);
  return sent.back();
}

void GradientExchange::State::Begin(OnReady when_ready) {
  squared_norm = 0;
  sent.clear();
  sent_buffers.clear();
  on_ready = std::move(when_ready);
}

void GradientExchange::State::MakeReducer() {
  const std::vector<std::vector<std::size_t>>& buckets = parameters.buckets();
  reducer = std::make_unique<c10d::Reducer>(
      parameters.tensors(), buckets,
      std::vector<std::size_t>(buckets.size(), Parameters::kBucketBytes), group,
      std::vector<bool>(parameters.tensors().size(), false), Parameters::kBucketBytes,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
      std::unordered_map<std::size_t, std::string>(), Parameters::kBucketBytes);
  reducer->register_comm_hook(std::make_unique<Hook>(*this));
  std::vector<at::Tensor> buffers;
  for (const c10d::GradBucket& bucket : reducer->get_grad_buckets(/*return_zero_tensors=*/false))
    buffers.push_back(bucket.getBuffer());
  parameters.SetGradients(buffers);
}

GradientExchange::GradientExchange(WorkerGroup& group, Parameters& parameters, std::size_t tail)
    : state_(std::make_unique<State>(group, parameters, tail)) {
  if (state_->group) state_->MakeReducer();
  // A collective of a lost group may still be at the gradients of then.
  if (!state_->group) Interrupt();
  parameters.ZeroGradients();
}

GradientExchange::~GradientExchange() = default;

std::span<double> GradientExchange::tail() {
  return {state_->tail.data_ptr<double>(), static_cast<std::size_t>(state_->tail.numel())};
}

bool GradientExchange::sending() const { return state_->sending; }

void GradientExchange::Arm(const at::Tensor& loss, OnReady on_ready) {
  state_->Begin(std::move(on_ready));
  if (state_->reducer) state_->reducer->prepare_for_backward({loss});
}

void GradientExchange::ExchangeNow(const OnReady& on_ready) {
  if (!interrupted()) state_->Begin(on_ready);
  if (!state_->group) return;
  const std::vector<at::Tensor>& gradients = state_->parameters.gradients();
  for (std::size_t bucket = state_->sent.size(); bucket < gradients.size(); ++bucket) {
    at::Tensor buffer = gradients[bucket];
    state_->Send(bucket, buffer);
  }
  for (const Future& future : state_->sent) future->waitAndThrow();
  if (!interrupted()) return;
  const torch::NoGradGuard no_grad;
  state_->MakeReducer();
  for (std::size_t bucket = 0; bucket < state_->sent_buffers.size(); ++bucket) {
    at::Tensor gradient = state_->parameters.gradients()[bucket];
    gradient.copy_(state_->sent_buffers[bucket]);
  }
}

void GradientExchange::Interrupt() {
  // A reducer whose backward failed cannot be used again, and its buffers are under way.
  state_->reducer.reset();
  std::vector<at::Tensor> buffers;
  for (const at::Tensor& gradient : state_->parameters.gradients())
    buffers.push_back(at::zeros_like(gradient));
  state_->parameters.SetGradients(buffers);
}

bool GradientExchange::interrupted() const { return state_->group && !state_->reducer; }

ExchangeTimes GradientExchange::Finish() {
  DYNAMIX_CHECK(state_->on_ready != nullptr, "Arm or ExchangeNow comes before Finish");
  if (state_->group) {
    DYNAMIX_CHECK(state_->tail_sent, "every bucket was sent");
    state_->tail_sent->waitAndThrow();
    state_->tail_sent.reset();
  } else {
    state_->squared_norm = state_->parameters.SquaredGradientNorm();
    state_->Ready();
  }
  state_->on_ready = nullptr;
  state_->sending = false;
  return {state_->ready, *state_->together, Clock::now()};
}

}  // namespace dynamix
