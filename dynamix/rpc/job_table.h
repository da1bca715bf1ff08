// JobTable: the jobs of a service, the thread that closes overdue rounds and forgets abandoned
// jobs, and the record writer, a thread that hands records on, so that a slow disk never delays
// advice.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "dynamix/rpc/served_job.h"
#include "dynamix/rpc/service.h"

namespace dynamix {

class JobTable {
 public:
  JobTable(const ServiceOptions& options, const PolicySpec& policy);
  ~JobTable();

  // Where that worker of its job had better begin.
  Result<Opening> OpeningOf(const OpenMessage& message) const;
  // Enters the worker, opening its job when there is none. An Error says why not.
  Result<Welcome> Join(const JoinMessage& message);
  // Null when there is no such job. Shared, because a job may be forgotten while it is asked.
  std::shared_ptr<ServedJob> Find(const std::string& name) const;
  void SetPolicy(const PolicySpec& policy);
  // Answers whoever waits; nobody is let in any more.
  void ShutDown();

  void Log(LogEvent event) const;
  ServiceCounts counts() const;
  void CountReport() { ++reports_; }
  void CountRefusal() { ++refused_; }

 private:
  using Jobs = std::map<std::string, std::shared_ptr<ServedJob>>;
  // What was told of one run of a job, so that it is told once.
  struct Told {
    int fallbacks = 0, updates = 0;
  };

  // An Error when worker and arbitrator cannot work together.
  Status Agree(const JoinMessage& message) const;
  // An Error when the job is too large.
  Status Fits(const JoinMessage& message) const;
  // These four hold the lock.
  Result<std::shared_ptr<ServedJob>> Open(const JoinMessage& message);
  Status MakeRoom(SteadyTime now);
  // Whoever waits there is asked to join anew.
  Jobs::iterator Forget(Jobs::iterator job);
  std::shared_ptr<ServedJob> Make(const JoinMessage& message);
  void Keep(RoundRecord record, const std::shared_ptr<Told>& told);
  void Tell(const RoundRecord& record, Told& told);
  void RunTimer();
  void RunRecordWriter();

  const ServiceOptions options_;
  mutable std::mutex mutex_;  // of the table, not of its jobs
  PolicySpec policy_;
  Jobs jobs_;
  bool stopping_ = false;

  std::mutex records_mutex_;
  std::condition_variable writer_wakes_, timer_wakes_;
  // With what was told of its job, which the job may not outlive.
  std::deque<std::pair<RoundRecord, std::shared_ptr<Told>>> records_;
  bool writer_stops_ = false;

  std::atomic<std::int64_t> reports_ = 0, rounds_ = 0, refused_ = 0, late_ = 0, dropped_ = 0;
  std::thread timer_, record_writer_;
};

}  // namespace dynamix
