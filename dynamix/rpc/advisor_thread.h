// AdvisorThread: the background thread of a RemoteAdvisor, and the mailbox between it and the
// training step. The only state both sides touch is behind one mutex, held for a few assignments.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/rpc/remote_advisor.h"

namespace dynamix {

class RemoteAdvisor::AdvisorThread {
 public:
  explicit AdvisorThread(const RemoteAdvisorOptions& options);
  ~AdvisorThread();

  std::optional<int> Open(const RoundEntry& entry, double job_start);
  void Submit(std::int64_t index, const RoundEntry& entry);
  Answer Poll();
  RemoteAdvisorCounts counts() const;
  std::uint64_t run() const;
  void SetRun(std::uint64_t run);  // before the first Submit

 private:
  using Clock = std::chrono::steady_clock;
  class Connection;  // to one address
  enum class Outcome { kDone, kFailed, kUnknownWorker };

  void Run();
  // Makes the call without the lock and returns with it, when the call has ended: by itself or by
  // the end of this object. A newer window does not end it: where an answer takes longer than a
  // window, no call would ever be answered.
  template <typename Request, typename Response>
  struct Call;
  template <typename Request, typename Response, typename Prepare>
  void Await(std::unique_lock<std::mutex>& lock, Call<Request, Response>& call, double timeout_s,
             Prepare prepare);
  void Leave(std::unique_lock<std::mutex>& lock);
  void AskOpening(std::unique_lock<std::mutex>& lock);
  void Deliver(std::unique_lock<std::mutex>& lock);
  Outcome Join(std::unique_lock<std::mutex>& lock);
  Outcome Report(std::unique_lock<std::mutex>& lock);
  void Take(const Advice& advice);
  void Failed(const std::string& what);
  void Worked();
  // Both are said by Run, which does not hold the lock then: a log may be slow, the training step
  // must not be.
  void Tell(const std::string& text);
  void Trace(AdvisorEvent event);
  void TraceAdvice(const Result<Advice>& advice);
  void Say(std::unique_lock<std::mutex>& lock);
  // Waits until `until`, a newer report or the end.
  bool Pause(std::unique_lock<std::mutex>& lock, Clock::time_point until);
  JoinMessage Joining() const;
  ReportMessage Message() const;

  const RemoteAdvisorOptions options_;
  const WorkerName name_;

  mutable std::mutex mutex_;
  std::condition_variable wakes_;
  bool stopping_ = false, leaving_ = false;
  // The question before the first iteration, until it is answered or given up, and its answer.
  struct Question {
    RoundEntry entry;
    double job_start = 0;
    Clock::time_point until;
  };
  std::condition_variable opened_;
  std::shared_ptr<Question> question_;  // shared with the call that asks it
  std::optional<int> opening_;
  // The mailbox.
  std::optional<RoundEntry> entry_;  // of the newest window, until it is answered or given up
  std::int64_t window_ = -1;         // the newest
  RoundEntry last_;                  // the entry of that window, for clamping
  Clock::time_point hopeless_;       // when to go on without an answer
  std::optional<int> batch_;
  RemoteAdvisorCounts counts_;
  std::uint64_t run_;
  StepLimit limit_;

  // The thread's own.
  Rng rng_;
  std::vector<std::string> to_tell_;
  std::vector<AdvisorEvent> to_trace_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::size_t connection_ = 0;
  bool joined_ = false, told_lost_ = false, told_fallback_ = false;
  Clock::duration lease_{};
  Clock::time_point renew_at_, retry_at_;
  int failures_ = 0;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace dynamix
