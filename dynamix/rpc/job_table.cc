#include "dynamix/rpc/job_table.h"

#include <exception>
#include <utility>

#include "dynamix/core/features.h"
#include "dynamix/core/make_round.h"

namespace dynamix {
namespace {

constexpr auto kTick = std::chrono::milliseconds(10);
// Records that may wait for a slow disk.
constexpr std::size_t kMostRecords = 256;

// A job before its first iteration. What the worker that asks does not start with itself, the others
// share alike.
std::vector<RoundEntry> UnmeasuredJob(const OpenMessage& message) {
  std::vector<RoundEntry> entries(message.join.size, message.entry);
  if (message.job_start == 0) return entries;
  double rest = message.job_start - message.entry.start_batch;
  int others = message.join.size - 1;
  for (int rank = 0; rank < message.join.size; ++rank) {
    if (rank == message.join.worker.rank) continue;
    RoundEntry& entry = entries[rank];
    entry.start_batch = entry.batch = static_cast<int>(rest / others--);
    entry.bounds = {.min = 1, .max = kLargestBatch};
    rest -= entry.batch;
  }
  return entries;
}

}  // namespace

JobTable::JobTable(const ServiceOptions& options, const PolicySpec& policy)
    : options_(options),
      policy_(policy),
      timer_([this] { RunTimer(); }),
      record_writer_([this] { RunRecordWriter(); }) {}

JobTable::~JobTable() {
  ShutDown();
  {
    const std::lock_guard lock(records_mutex_);
    writer_stops_ = true;
  }
  writer_wakes_.notify_all();
  timer_.join();
  record_writer_.join();
}

void JobTable::Log(LogEvent event) const {
  if (!options_.log) return;
  try {
    options_.log(event);
  } catch (const std::exception&) {
    // A line is lost; there is nowhere else to say so.
  }
}

Status JobTable::Agree(const JoinMessage& message) const {
  if (message.highest_epoch > options_.epoch)
    return Error{"this arbitrator is stale: its epoch is " + std::to_string(options_.epoch) +
                 ", the worker has heard " + std::to_string(message.highest_epoch)};
  if (message.feature_hash != FeatureHash())
    return Error{"worker and arbitrator measure different features: use the same version of both"};
  return Nothing{};
}

Result<Opening> JobTable::OpeningOf(const OpenMessage& message) const {
  const JoinMessage& join = message.join;
  if (Status agree = Agree(join); !agree) return Error{agree.error()};
  if (Status fits = Fits(join); !fits) return Error{fits.error()};
  const PolicySpec policy = [this] {
    const std::lock_guard lock(mutex_);
    return policy_;
  }();
  const Round round = MakeRound(0, join.settings, UnmeasuredJob(message));
  const int batch = Arbitrator(policy).Open(round)[join.worker.rank];
  return batch == message.entry.start_batch ? Opening{} : Opening{batch};
}

Result<Welcome> JobTable::Join(const JoinMessage& message) {
  if (Status agree = Agree(message); !agree) return Error{agree.error()};
  // One lock from finding to entering: else a second worker would take the job for a dead one.
  const std::lock_guard lock(mutex_);
  Result<std::shared_ptr<ServedJob>> job = Open(message);
  if (!job) return Error{job.error()};
  if (Status joined = job.value()->Join(message, std::chrono::steady_clock::now()); !joined)
    return Error{joined.error()};
  return Welcome{options_.epoch, options_.gate.lease_s, options_.gate.round_deadline_s};
}

Result<std::shared_ptr<ServedJob>> JobTable::Open(const JoinMessage& message) {
  const std::string& name = message.worker.job;
  const SteadyTime now = std::chrono::steady_clock::now();
  if (stopping_) return Error{"the arbitrator is shutting down"};
  const auto found = jobs_.find(name);
  if (found != jobs_.end()) {
    const bool live = found->second->LiveCount(now) > 0;
    if (live && found->second->IsOtherRun(message.run))
      return Error{"another run of job " + name +
                   " has live workers: give each run a name of its own (job)"};
    // Nobody is left and somebody starts from the beginning: another run of that name.
    const bool fresh = !live && message.next_window == 0;
    if (found->second->size() == message.size && !fresh) return found->second;
    if (live)
      return Error{"size = " + std::to_string(message.size) + " is not allowed: job " + name +
                   " runs with " + std::to_string(found->second->size()) + " workers"};
    Forget(found);
  }
  if (Status fits = Fits(message); !fits) return Error{fits.error()};
  if (Status room = MakeRoom(now); !room) return Error{room.error()};
  try {
    return jobs_[name] = Make(message);
  } catch (const std::exception& error) {
    return Error{"job " + name + " cannot be opened: " + error.what()};
  }
}

Status JobTable::Fits(const JoinMessage& message) const {
  if (message.size <= options_.max_workers) return Nothing{};
  return Error{"size = " + std::to_string(message.size) + " is not allowed: at most " +
               std::to_string(options_.max_workers) + " workers"};
}

// Jobs without workers are kept for their next run, but only while nobody needs the place.
Status JobTable::MakeRoom(SteadyTime now) {
  if (static_cast<int>(jobs_.size()) < options_.max_jobs) return Nothing{};
  auto silent = jobs_.end();
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    if (job->second->LiveCount(now) > 0) continue;
    if (silent == jobs_.end() || job->second->seen() < silent->second->seen()) silent = job;
  }
  if (silent == jobs_.end())
    return Error{"no room for another job: " + std::to_string(options_.max_jobs) + " are open"};
  Forget(silent);
  return Nothing{};
}

JobTable::Jobs::iterator JobTable::Forget(Jobs::iterator job) {
  Log({.event = "job_forgotten", .job = job->first});
  job->second->End(Refusal::kUnknown);
  return jobs_.erase(job);
}

std::shared_ptr<ServedJob> JobTable::Make(const JoinMessage& message) {
  const std::string& name = message.worker.job;
  ArbitratorOptions own =
      options_.job_options ? options_.job_options(name, message.size) : ArbitratorOptions{};
  auto arbitrator = std::make_unique<Arbitrator>(policy_, std::move(own));
  const JobOptions job_options{options_.gate, options_.epoch, options_.valid_windows};
  auto job = std::make_shared<ServedJob>(
      name, message.size, message.settings, std::move(arbitrator), job_options,
      [this, told = std::make_shared<Told>()](RoundRecord record) {
        Keep(std::move(record), told);
      });
  Log({.event = "job_opened",
       .job = name,
       .detail = std::to_string(message.size) + " workers, policy " + policy_.name});
  return job;
}

std::shared_ptr<ServedJob> JobTable::Find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(name);
  return found == jobs_.end() ? nullptr : found->second;
}

void JobTable::SetPolicy(const PolicySpec& policy) {
  const std::lock_guard lock(mutex_);
  policy_ = policy;
  for (const auto& [name, job] : jobs_) job->SetPolicy(policy);
}

void JobTable::ShutDown() {
  Jobs jobs;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    jobs = jobs_;
  }
  timer_wakes_.notify_all();
  for (const auto& [name, job] : jobs) job->End(Refusal::kShutDown);
}

void JobTable::Keep(RoundRecord record, const std::shared_ptr<Told>& told) {
  ++rounds_;
  late_ += record.late;
  const std::lock_guard lock(records_mutex_);
  if (records_.size() >= kMostRecords) {
    records_.pop_front();
    ++dropped_;
  }
  records_.emplace_back(std::move(record), told);
  writer_wakes_.notify_one();
}

void JobTable::RunTimer() {
  const auto memory = std::chrono::duration_cast<SteadyTime::duration>(
      std::chrono::duration<double>(options_.job_memory_s));
  std::unique_lock lock(mutex_);
  while (!timer_wakes_.wait_for(lock, kTick, [this] { return stopping_; })) {
    const SteadyTime now = std::chrono::steady_clock::now();
    std::vector<std::shared_ptr<ServedJob>> jobs;
    for (auto entry = jobs_.begin(); entry != jobs_.end();) {
      const ServedJob& job = *entry->second;
      const bool silent = now > job.seen() + memory;
      if (silent && job.LiveCount(now) == 0)
        entry = Forget(entry);
      else
        jobs.push_back((entry++)->second);
    }
    lock.unlock();
    for (const auto& job : jobs) job->Tick(now);
    jobs.clear();
    lock.lock();
  }
}

void JobTable::RunRecordWriter() {
  std::unique_lock lock(records_mutex_);
  while (true) {
    writer_wakes_.wait(lock, [this] { return writer_stops_ || !records_.empty(); });
    if (records_.empty()) return;
    const auto [record, told] = std::move(records_.front());
    records_.pop_front();
    lock.unlock();
    Tell(record, *told);
    if (options_.on_round) {
      try {
        options_.on_round(record);
      } catch (const std::exception& error) {
        ++dropped_;
        Log({LogEvent::Level::kWarning, "record_lost", record.job, -1, error.what()});
      }
    }
    lock.lock();
  }
}

void JobTable::Tell(const RoundRecord& record, Told& told) {
  if (!record.decision.failure.empty())
    Log({LogEvent::Level::kWarning, "policy_failed", record.job, -1, record.decision.failure});
  if (told.fallbacks < record.fallbacks) {
    told.fallbacks = record.fallbacks;
    Log({LogEvent::Level::kWarning, "fallback", record.job, -1,
         "the job is slower than at its start batches: they are in force again (" +
             std::to_string(told.fallbacks) + " so far)"});
  }
  if (told.updates < record.updates) {
    told.updates = record.updates;
    Log({.event = "learned",
         .job = record.job,
         .detail = "update " + std::to_string(told.updates)});
  }
}

ServiceCounts JobTable::counts() const {
  ServiceCounts counts;
  counts.reports = reports_;
  counts.rounds = rounds_;
  counts.refused = refused_;
  counts.late = late_;
  counts.records_dropped = dropped_;
  const SteadyTime now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  counts.jobs = static_cast<int>(jobs_.size());
  for (const auto& [name, job] : jobs_) counts.workers += job->LiveCount(now);
  return counts;
}

}  // namespace dynamix
