#include "dynamix/rpc/advisor_thread.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "dynamix/core/features.h"
#include "dynamix/rpc/arbitrator.grpc.pb.h"
#include "dynamix/rpc/wire.h"

namespace dynamix {
namespace {

using std::chrono::duration_cast;

constexpr double kFirstBackoffS = 0.05, kLongestBackoffS = 2;
constexpr int kMostDoublings = 12;
// Failures of one connection until it is made anew: after a black hole TCP itself may take minutes
// to notice.
constexpr int kFailuresOfALine = 2;
constexpr double kFarewellS = 0.2;
// How often a call under way looks whether it has become pointless. A span: gRPC's own callback
// threads wait by the wall clock (async_server.h), this does not.
const gpr_timespec kLook = gpr_time_from_millis(10, GPR_TIMESPAN);

std::chrono::steady_clock::duration Seconds(double seconds) {
  return duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

std::uint64_t FreshIncarnation() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

WorkerName NameOf(const RemoteAdvisorOptions& options) {
  return {options.job, options.rank,
          options.incarnation != 0 ? options.incarnation : FreshIncarnation()};
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const TlsFiles& tls) {
  if (tls.empty()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({tls.authority, tls.key, tls.certificate});
}

}  // namespace

// One address: its channel, made when first needed and anew after failures.
class RemoteAdvisor::AdvisorThread::Connection {
 public:
  Connection(std::string address, const RemoteAdvisorOptions& options)
      : address_(std::move(address)), options_(options) {}

  // Takes its time, so never under the mailbox's lock.
  v1::Arbitrator::Stub& stub() {
    if (stub_ == nullptr || failures_ >= kFailuresOfALine) {
      stub_ = v1::Arbitrator::NewStub(MakeChannel());
      failures_ = 0;
    }
    return *stub_;
  }
  void Worked() { failures_ = 0; }
  void Failed() { ++failures_; }
  const std::string& address() const { return address_; }
  grpc::CompletionQueue& queue() { return queue_; }

  void Prepare(grpc::ClientContext& context, double timeout_s) const {
    // A span, not a time of day: a jump of the clock means nothing.
    context.set_deadline(
        gpr_time_from_millis(static_cast<std::int64_t>(1e3 * timeout_s), GPR_TIMESPAN));
    if (!options_.token.empty()) context.AddMetadata("authorization", "Bearer " + options_.token);
  }

 private:
  std::shared_ptr<grpc::Channel> MakeChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a new channel is a new connection
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    arguments.SetMaxReceiveMessageSize(64 << 10);
    if (!options_.tls_name.empty()) arguments.SetSslTargetNameOverride(options_.tls_name);
    return grpc::CreateCustomChannel(address_, Credentials(options_.tls), arguments);
  }

  const std::string address_;
  const RemoteAdvisorOptions& options_;  // the advisor thread's, which owns the connection
  grpc::CompletionQueue queue_;
  std::unique_ptr<v1::Arbitrator::Stub> stub_;
  int failures_ = 0;
};

RemoteAdvisor::AdvisorThread::AdvisorThread(const RemoteAdvisorOptions& options)
    : options_(options),
      name_(NameOf(options)),
      run_(options.run),
      limit_(options.max_factor),
      rng_(name_.incarnation + static_cast<std::uint64_t>(name_.rank)) {
  for (const std::string& address : options.AddressList())
    connections_.push_back(std::make_unique<Connection>(address, options_));
  thread_ = std::thread([this] { Run(); });
}

RemoteAdvisor::AdvisorThread::~AdvisorThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wakes_.notify_all();
  thread_.join();
}

std::optional<int> RemoteAdvisor::AdvisorThread::Open(const RoundEntry& entry, double job_start) {
  std::unique_lock lock(mutex_);
  const Clock::time_point until = Clock::now() + Seconds(options_.opening_s);
  question_ = std::make_shared<Question>(Question{entry, job_start, until});
  wakes_.notify_all();
  opened_.wait_until(lock, until, [this] { return question_ == nullptr; });
  question_.reset();
  return std::exchange(opening_, {});
}

void RemoteAdvisor::AdvisorThread::Submit(std::int64_t index, const RoundEntry& entry) {
  {
    const std::lock_guard lock(mutex_);
    entry_ = last_ = entry;
    window_ = index;
    batch_.reset();
    hopeless_ = Clock::now() + Seconds(options_.patience_s);
    ++counts_.submitted;
  }
  wakes_.notify_all();
}

Answer RemoteAdvisor::AdvisorThread::Poll() {
  const std::lock_guard lock(mutex_);
  const bool hoping = entry_ && !counts_.breaker_open && Clock::now() < hopeless_;
  return {.ready = !hoping, .batch = batch_};
}

RemoteAdvisorCounts RemoteAdvisor::AdvisorThread::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::uint64_t RemoteAdvisor::AdvisorThread::run() const {
  const std::lock_guard lock(mutex_);
  return run_;
}

void RemoteAdvisor::AdvisorThread::SetRun(std::uint64_t run) {
  const std::lock_guard lock(mutex_);
  run_ = run;
}

void RemoteAdvisor::AdvisorThread::Tell(const std::string& text) { to_tell_.push_back(text); }

void RemoteAdvisor::AdvisorThread::Trace(AdvisorEvent event) {
  if (!options_.trace) return;
  event.time = Clock::now();
  event.incarnation = name_.incarnation;
  to_trace_.push_back(event);
}

void RemoteAdvisor::AdvisorThread::Say(std::unique_lock<std::mutex>& lock) {
  if (to_trace_.empty() && (to_tell_.empty() || !options_.log)) return;
  const std::vector<std::string> lines = std::exchange(to_tell_, {});
  const std::vector<AdvisorEvent> events = std::exchange(to_trace_, {});
  lock.unlock();
  for (const AdvisorEvent& event : events) options_.trace(event);
  if (options_.log)
    for (const std::string& line : lines) options_.log(line);
  lock.lock();
}

void RemoteAdvisor::AdvisorThread::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    Say(lock);
    const Clock::time_point now = Clock::now();
    if (question_) {
      AskOpening(lock);
    } else if (now < retry_at_) {
      Pause(lock, retry_at_);
    } else if (entry_) {
      Deliver(lock);
    } else if (joined_ && now >= renew_at_) {
      if (Join(lock) == Outcome::kDone) Worked();
    } else if (joined_) {
      Pause(lock, renew_at_);
    } else {
      wakes_.wait(lock, [this] { return stopping_ || entry_ || question_; });
    }
  }
  Say(lock);
  if (joined_ && !counts_.breaker_open) Leave(lock);
}

bool RemoteAdvisor::AdvisorThread::Pause(std::unique_lock<std::mutex>& lock,
                                         Clock::time_point until) {
  const std::int64_t window = window_;
  return wakes_.wait_until(lock, until, [&] { return stopping_ || window_ != window; });
}

void RemoteAdvisor::AdvisorThread::Deliver(std::unique_lock<std::mutex>& lock) {
  if (!joined_ && Join(lock) != Outcome::kDone) return;
  if (!entry_) return;
  const Outcome outcome = Report(lock);
  // A restarted arbitrator does not know us: join and ask again at once.
  if (outcome == Outcome::kUnknownWorker) joined_ = false;
}

// A call under way. On the stack of the thread, which does not leave before gRPC is done with it.
template <typename Request, typename Response>
struct RemoteAdvisor::AdvisorThread::Call {
  grpc::ClientContext context;
  Request request;
  Response response;
  grpc::Status status;
};

template <typename Request, typename Response, typename Prepare>
void RemoteAdvisor::AdvisorThread::Await(std::unique_lock<std::mutex>& lock,
                                         Call<Request, Response>& call, double timeout_s,
                                         Prepare prepare) {
  Connection& connection = *connections_[connection_];
  connection.Prepare(call.context, timeout_s);
  lock.unlock();
  const auto reader = prepare(connection.stub(), call, connection.queue());
  reader->StartCall();
  reader->Finish(&call.response, &call.status, &call);
  void* tag = nullptr;
  bool ok = false, cancelled = false;
  while (connection.queue().AsyncNext(&tag, &ok, kLook) != grpc::CompletionQueue::GOT_EVENT) {
    const std::lock_guard look(mutex_);
    const bool pointless = stopping_ && !leaving_;
    if (pointless && !cancelled) call.context.TryCancel();
    cancelled = cancelled || pointless;
  }
  lock.lock();
}

JoinMessage RemoteAdvisor::AdvisorThread::Joining() const {
  JoinMessage message;
  message.worker = name_;
  message.size = options_.size;
  message.feature_hash = FeatureHash();
  message.next_window = std::max<std::int64_t>(0, window_);
  message.highest_epoch = counts_.epoch;
  message.run = run_;
  message.settings = options_.settings;
  return message;
}

// Every address is asked once, while somebody waits, each for its part of the time that is left. What
// fails here is no failure: the job begins where it starts, and joins later.
void RemoteAdvisor::AdvisorThread::AskOpening(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Question> question = question_;
  const RoundEntry& entry = question->entry;
  for (std::size_t left = connections_.size(); left > 0 && question_ == question; --left) {
    const std::chrono::duration<double> seconds = question->until - Clock::now();
    if (stopping_ || seconds.count() <= 0) break;
    Call<v1::OpenRequest, v1::Opening> call;
    Write(OpenMessage{Joining(), entry, question->job_start}, call.request);
    Await(lock, call, seconds.count() / static_cast<double>(left),
          [](auto& stub, auto& own, auto& queue) {
            return stub.PrepareAsyncOpen(&own.context, own.request, &queue);
          });
    if (question_ != question) return;  // given up
    const Result<Opening> opening =
        call.status.ok() ? Read(call.response) : Error{call.status.error_message()};
    if (opening) {
      if (const std::optional<int> batch = opening.value().batch)
        opening_ = StepLimit(options_.max_factor).Apply(*batch, entry.batch, entry.bounds);
      break;
    }
    connection_ = (connection_ + 1) % connections_.size();
  }
  question_.reset();
  opened_.notify_all();
}

RemoteAdvisor::AdvisorThread::Outcome RemoteAdvisor::AdvisorThread::Join(
    std::unique_lock<std::mutex>& lock) {
  const JoinMessage message = Joining();
  Call<v1::JoinRequest, v1::JoinResponse> call;
  Write(message, call.request);
  Trace({.kind = AdvisorEvent::Kind::kJoin, .epoch = counts_.epoch, .window = message.next_window});
  Await(lock, call, options_.timeout_s, [](auto& stub, auto& own, auto& queue) {
    return stub.PrepareAsyncJoin(&own.context, own.request, &queue);
  });
  if (!call.status.ok()) {
    Trace({.kind = AdvisorEvent::Kind::kFailure});
    Failed(call.status.error_message());
    return Outcome::kFailed;
  }
  const Welcome welcome = Read(call.response).value();
  Trace({.kind = AdvisorEvent::Kind::kWelcome, .epoch = welcome.epoch});
  if (welcome.epoch < counts_.epoch) {
    ++counts_.dropped;
    Failed("stale: its epoch is " + std::to_string(welcome.epoch));
    return Outcome::kFailed;
  }
  counts_.epoch = welcome.epoch;
  joined_ = true;
  ++counts_.joined;
  lease_ = Seconds(welcome.lease_s);
  renew_at_ = Clock::now() + lease_ / 3;
  return Outcome::kDone;
}

// Best effort: the lease ends anyway.
void RemoteAdvisor::AdvisorThread::Leave(std::unique_lock<std::mutex>& lock) {
  leaving_ = true;
  Call<v1::LeaveRequest, v1::LeaveResponse> call;
  Write(name_, *call.request.mutable_worker());
  Await(lock, call, kFarewellS, [](auto& stub, auto& own, auto& queue) {
    return stub.PrepareAsyncLeave(&own.context, own.request, &queue);
  });
}

ReportMessage RemoteAdvisor::AdvisorThread::Message() const {
  return {name_, counts_.epoch, window_, *entry_};
}

RemoteAdvisor::AdvisorThread::Outcome RemoteAdvisor::AdvisorThread::Report(
    std::unique_lock<std::mutex>& lock) {
  Call<v1::ReportRequest, v1::Advice> call;
  Write(Message(), call.request);
  Trace({.kind = AdvisorEvent::Kind::kReport,
         .epoch = counts_.epoch,
         .window = window_,
         .batch = entry_->batch,
         .bounds = entry_->bounds});
  Await(lock, call, options_.timeout_s, [](auto& stub, auto& own, auto& queue) {
    return stub.PrepareAsyncReport(&own.context, own.request, &queue);
  });
  if (call.status.ok()) {
    const Result<Advice> advice = Read(call.response);
    TraceAdvice(advice);
    if (advice && advice.value().epoch >= counts_.epoch) {
      Worked();
      Take(advice.value());
      return Outcome::kDone;
    }
    ++counts_.dropped;
    Failed(advice ? "stale: its epoch is " + std::to_string(advice.value().epoch) : advice.error());
    return Outcome::kFailed;
  }
  Trace({.kind = AdvisorEvent::Kind::kFailure});
  if (stopping_) return Outcome::kFailed;
  if (call.status.error_code() == grpc::StatusCode::NOT_FOUND) return Outcome::kUnknownWorker;
  Failed(call.status.error_message());
  return Outcome::kFailed;
}

void RemoteAdvisor::AdvisorThread::TraceAdvice(const Result<Advice>& advice) {
  if (!advice) return Trace({.kind = AdvisorEvent::Kind::kFailure});
  Trace({.kind = AdvisorEvent::Kind::kAdvice,
         .epoch = advice.value().epoch,
         .window = advice.value().window,
         .batch = advice.value().batch,
         .valid_windows = advice.value().valid_windows});
}

// Called with the lock held, for an answer to window `advice.window`.
void RemoteAdvisor::AdvisorThread::Take(const Advice& advice) {
  counts_.epoch = advice.epoch;
  counts_.fallback = advice.fallback;
  renew_at_ = Clock::now() + lease_ / 3;
  if (advice.fallback != told_fallback_) {
    told_fallback_ = advice.fallback;
    Tell(advice.fallback ? "the arbitrator's guard fell back to the start batches"
                         : "the arbitrator's policy is in force again");
  }
  const std::int64_t age = window_ - advice.window;
  if (age < 0 || age > advice.valid_windows) {
    ++counts_.dropped;
  } else {
    ++counts_.advised;
    if (advice.batch) batch_ = limit_.Apply(*advice.batch, last_.batch, last_.bounds);
  }
  if (age <= 0) entry_.reset();
}

void RemoteAdvisor::AdvisorThread::Worked() {
  if (told_lost_) Tell("advice from " + connections_[connection_]->address() + " again");
  told_lost_ = false;
  failures_ = 0;
  counts_.breaker_open = false;
  connections_[connection_]->Worked();
}

void RemoteAdvisor::AdvisorThread::Failed(const std::string& what) {
  ++counts_.failed;
  ++failures_;
  joined_ = false;
  connections_[connection_]->Failed();
  const std::string address = connections_[connection_]->address();
  connection_ = (connection_ + 1) % connections_.size();
  const int limit = options_.breaker_failures * static_cast<int>(connections_.size());
  const double jitter = rng_.Uniform(0.5, 1.5);
  if (failures_ < limit) {
    const double backoff = kFirstBackoffS * (1 << std::min(failures_ - 1, kMostDoublings));
    retry_at_ = Clock::now() + Seconds(jitter * std::min(backoff, kLongestBackoffS));
    return;
  }
  counts_.breaker_open = true;
  entry_.reset();
  const int opened = std::min(failures_ - limit, 4);
  retry_at_ = Clock::now() + Seconds(jitter * options_.breaker_s * (1 << opened));
  if (!told_lost_)
    Tell("no advice from " + address + " (" + what + "): the batch stays; trying again later");
  told_lost_ = true;
}

}  // namespace dynamix
