#include "dynamix/training/worker.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/failpoint.h"

namespace dynamix {
namespace {

// The tail: sums over ranks, then one slot per rank for its next batch.
enum Tail : int {
  kSamples,
  kLoss,
  kCorrect,
  kWeightedSquaredNorm,  // |s_i|^2 / b_i = b_i |g_i|^2
  kReady,
  kStop,
  kJoin,  // a rank wants to be taken in
  kNextBatches
};

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

const WorkerOptions& Validated(const WorkerOptions& options) {
  options.bounds.Validate("bounds");
  RequireInRange("start_batch", options.start_batch, options.bounds.min, options.bounds.max);
  RequireInRange("micro_batch", options.micro_batch, 1, 1 << 24);
  RequireInRange("window_iterations", options.window_iterations, 1, 1 << 24);
  RequireInRange("noise_memory", options.noise_memory, 0.0, 0.999999);
  return options;
}

}  // namespace

Trainable::Trainable() = default;
Trainable::Trainable(const Trainable&) = default;
Trainable::~Trainable() = default;

Trainable TrainableOf(Classifier& classifier) {
  Trainable trainable;
  trainable.parameters = classifier.parameters();
  trainable.buffers = classifier.buffers();
  trainable.samples = classifier.reader().data().training.count();
  trainable.forward = [&classifier](std::span<const Sample> samples, PassSums& sums) {
    return classifier.Forward(samples, sums);
  };
  return trainable;
}

Worker::Worker(WorkerGroup& group, const Trainable& trainable, const WorkerOptions& options,
               Advisor* advisor)
    : group_(group),
      trainable_(trainable),
      options_(Validated(options)),
      advisor_(advisor),
      parameters_(trainable.parameters),
      optimizer_(options.optimizer, parameters_),
      sampler_(trainable.samples, options.seed),
      noise_scale_(options.noise_memory),
      bounds_(options.bounds),
      micro_batch_(options.micro_batch),
      start_batch_(options.start_batch) {}

Result<std::unique_ptr<Worker>> Worker::Start(WorkerGroup& group, const Trainable& trainable,
                                              const WorkerOptions& options, Advisor* advisor) {
  std::unique_ptr<Worker> worker(new Worker(group, trainable, options, advisor));
  worker->joined_ = group.joining();
  Status met = worker->joined_ ? worker->Recover() : worker->Meet();
  if (!met) return Error{met.error()};
  return worker;
}

Status Worker::Meet() {
  // Ranks with other models would exchange nonsense, or wait for ever.
  const double own[] = {static_cast<double>(options_.start_batch),
                        static_cast<double>(parameters_.count()),
                        static_cast<double>(trainable_.samples)};
  std::vector<double> all(3 * group_.size());
  if (Status status = group_.AllGather(own, all); !status) return status;
  for (int rank = 0; rank < group_.size(); ++rank) {
    start_batches_.push_back(static_cast<int>(all[3 * rank]));
    if (all[3 * rank + 1] != own[1] || all[3 * rank + 2] != own[2])
      return Error{"rank " + std::to_string(rank) + " has another model or data set than rank " +
                   std::to_string(group_.rank())};
  }
  batches_ = start_batches_;
  job_start_ = std::accumulate(batches_.begin(), batches_.end(), 0.0);
  if (Status opened = Open(); !opened) return opened;
  sharing_ = group_.members();
  MakeExchange();
  const std::span<float> values(parameters_.values().data_ptr<float>(), parameters_.count());
  if (Status status = group_.Broadcast(values); !status) return status;
  // What a tail costs when nobody is late: the best of a few.
  for (int i = 0; i < 5 && group_.size() > 1; ++i) {
    const Clock::time_point begin = Clock::now();
    std::vector<double> tail(kNextBatches + group_.size());
    if (Status status = group_.AllReduce(tail); !status) return status;
    const double ms = Milliseconds(Clock::now() - begin);
    latency_ms_ = i == 0 ? ms : std::min(latency_ms_, ms);
  }
  return Nothing{};
}

Status Worker::Open() {
  const int start = start_batches_[group_.rank()];
  int own = start;
  if (advisor_ != nullptr) {
    const Result<std::optional<int>> opening = advisor_->Open(
        {.bounds = bounds_, .start_batch = start, .batch = start, .report = {}}, job_start_);
    if (!opening) return Error{opening.error()};
    if (opening.value()) own = ClampBatch(*opening.value(), start, bounds_);
  }
  // Others may have no advisor, or another one.
  const double told[] = {static_cast<double>(own)};
  std::vector<double> all(group_.size());
  if (Status status = group_.AllGather(told, all); !status) return status;
  batches_.assign(all.begin(), all.end());
  return Nothing{};
}

void Worker::MakeExchange() {
  exchange_ = std::make_unique<GradientExchange>(group_, parameters_,
                                                 std::size_t{kNextBatches} + group_.size());
}

Status Worker::Iterate(bool stop) {
  stop_ = stop;
  // Others may still be in the collectives that end their window (Together), so whoever was taken in
  // then has its part in those before its first iteration.
  if (joined_ && returned_ == 0 && window_ended()) {
    returned_ = iterations_;
    return Nothing{};
  }
  if (join_asked_ && window_ended())
    if (Status met = Recover(/*take_joiners=*/true); !met) return met;
  const std::int64_t next = iterations_ + 1;
  KeepBuffers();
  while (iterations_ < next) {
    Status done = TryIteration();
    if (done) break;
    if (!CanRecover()) return done;
    PutBackBuffers();
    if (Status back = Recover(); !back) return back;
  }
  returned_ = iterations_;
  while (phase_ == kStepped && timing_.iterations == options_.window_iterations) {
    Status done = EndWindow();
    if (done || !CanRecover()) return done;
    if (Status back = Recover(); !back) return back;
    returned_ = iterations_;
  }
  return Nothing{};
}

Status Worker::TryIteration() {
  started_ = Clock::now();
  try {
    const ExchangeTimes times = ExchangeGradients();
    DYNAMIX_FAILPOINT("exchanged");
    if (Status step = TakeStep(); !step) return step;
    DYNAMIX_FAILPOINT("stepped");
    AddTiming(started_, times);
    TakeBatches();
  } catch (const std::exception& error) {
    if (dynamic_cast<const CheckFailure*>(&error)) throw;
    if (IsOutOfMemory(error))
      return Error{"rank " + std::to_string(group_.rank()) + " is out of memory in a pass of " +
                   std::to_string(micro_batch_) + " samples and cannot go lower: " + error.what()};
    if (!exchange_->sending()) throw;  // the model's own
    return group_.PeerLost(error.what());
  }
  ++iterations_;
  phase_ = kStepped;
  return Nothing{};
}

ExchangeTimes Worker::ExchangeGradients() {
  const std::vector<Sample> samples = sampler_.Part(batches_, group_.rank());
  while (true) {
    try {
      RunPasses(samples);
      return exchange_->Finish();
    } catch (const std::exception& error) {
      if (!IsOutOfMemory(error) || micro_batch_ == 1) throw;
      if (armed_) exchange_->Interrupt();
    }
    ShrinkMicroBatch(static_cast<int>(samples.size()));
  }
}

void Worker::RunPasses(const std::vector<Sample>& samples) {
  parameters_.ZeroGradients();
  sums_ = {};
  const std::size_t count = samples.size();
  const std::size_t passes = (count + micro_batch_ - 1) / micro_batch_;
  const std::size_t largest = (count + passes - 1) / passes;
  const auto on_ready = [this](double squared_norm) { FillTail(squared_norm); };
  // A pass of a size not seen before may run out of memory halfway: gradients are then computed
  // again, so nothing leaves before they are complete.
  const bool overlap = static_cast<int>(largest) <= proven_batch_ && !exchange_->interrupted();
  armed_ = false;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const std::size_t begin = count * pass / passes, end = count * (pass + 1) / passes;
    const at::Tensor loss =
        trainable_.forward(std::span(samples).subspan(begin, end - begin), sums_);
    sums_.loss += loss.item<double>();
    if (overlap && pass + 1 == passes) {
      exchange_->Arm(loss, on_ready);
      armed_ = true;
    }
    loss.backward();
  }
  if (!(sums_.samples > 0))
    throw InputError("Trainable::forward counted no samples: it must add them to its PassSums");
  if (!overlap) exchange_->ExchangeNow(on_ready);
  proven_batch_ = std::max(proven_batch_, static_cast<int>(largest));
}

void Worker::ShrinkMicroBatch(int failed) {
  micro_batch_ = std::max(1, std::min(micro_batch_, failed) / 2);
  bounds_.max = std::max(bounds_.lowest(), std::min(bounds_.max, micro_batch_));
  proven_batch_ = std::min(proven_batch_, micro_batch_);
}

void Worker::FillTail(double squared_norm) {
  if (options_.least_compute_ms) {
    const double ms = options_.least_compute_ms(batches_[group_.rank()]);
    std::this_thread::sleep_until(started_ + std::chrono::duration_cast<Clock::duration>(
                                                 std::chrono::duration<double, std::milli>(ms)));
  }
  const std::span<double> tail = exchange_->tail();
  std::fill(tail.begin(), tail.end(), 0.0);
  const Answer answer = advisor_ && !advice_is_old_ ? advisor_->Poll() : Answer{};
  const int batch = batches_[group_.rank()];
  tail[kSamples] = sums_.samples;
  tail[kLoss] = sums_.loss;
  tail[kCorrect] = sums_.correct;
  tail[kWeightedSquaredNorm] = squared_norm / sums_.samples;
  tail[kReady] = answer.ready ? 1 : 0;
  tail[kStop] = stop_ ? 1 : 0;
  tail[kJoin] = group_.JoinWaiting() ? 1 : 0;
  tail[kNextBatches + group_.rank()] =
      answer.batch ? ClampBatch(*answer.batch, batch, bounds_) : batch;
}

Status Worker::TakeStep() {
  const std::span<const double> tail = exchange_->tail();
  const double samples = tail[kSamples];
  DYNAMIX_CHECK(samples > 0, "somebody had samples");
  const double squared_norm = group_.size() > 1
                                  ? parameters_.SquaredGradientNorm() / (samples * samples)
                                  : tail[kWeightedSquaredNorm] / samples;
  if (!std::isfinite(tail[kLoss]) || !std::isfinite(squared_norm))
    return Error{"training diverged: the loss of iteration " + std::to_string(iterations_) +
                 " is not finite (a smaller learning rate helps)"};
  noise_scale_.Add(EstimateNoise(tail[kWeightedSquaredNorm], squared_norm, samples, group_.size()));
  const double rate =
      options_.optimizer.LearningRate(samples, schedule_position_, noise_scale_.value());
  optimizer_.Step(samples, rate);
  schedule_position_ += options_.optimizer.Advance(samples, noise_scale_.value());
  sampler_.Advance(batches_);
  statistics_.Add(tail[kLoss] / samples, tail[kCorrect] / samples, std::sqrt(squared_norm), rate);
  stopping_ = tail[kStop] > 0;
  join_asked_ = tail[kJoin] > 0;
  return Nothing{};
}

void Worker::AddTiming(Clock::time_point start, const ExchangeTimes& times) {
  const double total = Milliseconds(Clock::now() - start);
  const double exchange = Milliseconds(times.done - times.ready);
  // A tail takes latency_ms_ even when nobody waits; that part is communication.
  const double wait = std::clamp(Milliseconds(times.together - times.ready) - latency_ms_, 0.0,
                                 std::max(0.0, exchange));
  ++timing_.iterations;
  timing_.iteration_ms += total;
  timing_.compute_ms += total - exchange;
  timing_.wait_ms += wait;
  timing_.communication_ms += exchange - wait;
}

void Worker::TakeBatches() {
  const std::span<const double> tail = exchange_->tail();
  if (tail[kReady] < group_.size()) return;
  std::vector<int> next;
  for (int rank = 0; rank < group_.size(); ++rank)
    next.push_back(static_cast<int>(tail[kNextBatches + rank]));
  if (next == batches_) return;
  batches_ = next;
  // A window's numbers belong to one set of batches.
  timing_ = {};
  statistics_ = {};
}

Status Worker::EndWindow() {
  const double k = timing_.iterations;
  report_ = {};
  report_.rank = group_.slot();
  report_.window = windows_;
  report_.iterations = timing_.iterations;
  report_.local_batch = batches_[group_.rank()];
  report_.iteration_ms = timing_.iteration_ms / k;
  report_.compute_ms = timing_.compute_ms / k;
  report_.wait_ms = timing_.wait_ms / k;
  report_.communication_ms = timing_.communication_ms / k;
  report_.training = statistics_.Make(noise_scale_.value(), progress());
  if (options_.measure) options_.measure(report_);
  const int rank = group_.rank();
  const RoundEntry entry{.bounds = bounds_,
                         .start_batch = start_batches_[rank],
                         .batch = batches_[rank],
                         .report = report_};
  if (advisor_ != nullptr)
    if (Status submitted = advisor_->Submit(windows_, entry); !submitted) return submitted;
  ++windows_;
  timing_ = {};
  statistics_ = {};
  advice_is_old_ = false;
  phase_ = kSubmitted;
  return Nothing{};
}

}  // namespace dynamix
