#include "dynamix/rpc/served_job.h"

#include <utility>

namespace dynamix {
namespace {

// Rounds without decisions while some worker has never been heard.
constexpr int kPartialRounds = 20;

}  // namespace

ServedJob::ServedJob(std::string name, int size, const JobSettings& settings,
                     std::unique_ptr<Arbitrator> arbitrator, const JobOptions& options,
                     OnRecord on_record)
    : name_(std::move(name)),
      size_(size),
      options_(options),
      on_record_(std::move(on_record)),
      settings_(settings),
      seen_(std::chrono::steady_clock::now()),
      gate_(size, options.gate),
      arbitrator_(std::move(arbitrator)) {
  last_.epoch = options.epoch;
  last_.window = -1;
}

bool ServedJob::Join(const JoinMessage& message, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  if (message.worker.rank == 0) settings_ = message.settings;
  seen_ = now;
  return gate_.Join(message.worker.rank, message.worker.incarnation, message.next_window, now);
}

void ServedJob::Leave(const WorkerName& worker, SteadyTime now) {
  {
    const std::lock_guard lock(mutex_);
    gate_.Leave(worker.rank, worker.incarnation);
    seen_ = now;
  }
  Tick(now);
}

Advice ServedJob::AdviceFor(int rank) const {
  Advice advice = last_;
  if (!last_sizes_.empty() && last_active_[rank]) advice.batch = last_sizes_[rank];
  return advice;
}

void ServedJob::Report(const ReportMessage& message, SteadyTime now, Reply reply) {
  Answers answers;
  {
    const std::lock_guard lock(mutex_);
    seen_ = now;
    if (shut_down_)
      answers.push_back({std::move(reply), Refusal::kShutDown, {}});
    else
      Enter(message, now, std::move(reply), answers);
  }
  for (const Answered& answer : answers) answer.reply(answer.refusal, answer.advice);
}

void ServedJob::Enter(const ReportMessage& message, SteadyTime now, Reply reply, Answers& answers) {
  const int rank = message.worker.rank;
  if (gate_.MustClose(message.window)) CloseRound(now, answers);
  const RoundGate::Arrival arrival =
      gate_.Add(rank, message.worker.incarnation, message.window, message.entry, now);
  switch (arrival) {
    case RoundGate::Arrival::kWaits:
      if (Reply& old = waiting_[rank]; old)
        answers.push_back({std::move(old), Refusal::kSuperseded, {}});
      waiting_[rank] = std::move(reply);
      if (gate_.Complete(now)) CloseRound(now, answers);
      break;
    case RoundGate::Arrival::kAnswered:
      answers.push_back({std::move(reply), Refusal::kNone, AdviceFor(rank)});
      break;
    case RoundGate::Arrival::kStale: {
      Advice keep = last_;
      keep.window = message.window;
      answers.push_back({std::move(reply), Refusal::kNone, keep});
      break;
    }
    case RoundGate::Arrival::kUnknown:
      answers.push_back({std::move(reply), Refusal::kUnknown, {}});
      break;
    case RoundGate::Arrival::kReplaced:
      answers.push_back({std::move(reply), Refusal::kReplaced, {}});
  }
}

Decision ServedJob::Decide(const Round& round) {
  // A policy remembers the cluster it sees first, so that must be the whole one; but not for ever.
  if (gate_.AllHeard() || ++partial_rounds_ > kPartialRounds) return arbitrator_->Step(round);
  Decision decision;
  decision.guard = Guard::State::kMeasures;
  decision.sizes = Batches(round);
  return decision;
}

void ServedJob::CloseRound(SteadyTime now, Answers& answers) {
  RoundRecord record;
  record.job = name_;
  record.round = gate_.Close(settings_, now);
  record.decision = Decide(record.round);
  const Decision& decision = record.decision;
  last_.window = record.round.index;
  last_.valid_windows = options_.valid_windows;
  last_.fallback = decision.guard == Guard::State::kFallsBack;
  last_.policy = decision.policy;
  last_sizes_ = decision.sizes;
  last_active_.clear();
  for (const RoundEntry& entry : record.round.entries) {
    last_active_.push_back(entry.active);
    record.late += entry.active && !entry.report ? 1 : 0;
  }
  for (auto& [rank, reply] : waiting_)
    answers.push_back({std::move(reply), Refusal::kNone, AdviceFor(rank)});
  waiting_.clear();
  seconds_ += record.round.seconds;
  record.seconds = seconds_;
  record.fallbacks = arbitrator_->guard().fallbacks();
  record.updates = arbitrator_->updates();
  if (on_record_) on_record_(std::move(record));
}

void ServedJob::Tick(SteadyTime now) {
  Answers answers;
  {
    const std::lock_guard lock(mutex_);
    if (gate_.Complete(now)) CloseRound(now, answers);
  }
  for (const Answered& answer : answers) answer.reply(answer.refusal, answer.advice);
}

void ServedJob::SetPolicy(const PolicySpec& policy) {
  const std::lock_guard lock(mutex_);
  arbitrator_->SetPolicy(policy);
}

void ServedJob::ShutDown() {
  std::map<int, Reply> waiting;
  {
    const std::lock_guard lock(mutex_);
    shut_down_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& [rank, reply] : waiting) reply(Refusal::kShutDown, {});
}

int ServedJob::LiveCount(SteadyTime now) const {
  const std::lock_guard lock(mutex_);
  return gate_.LiveCount(now);
}

bool ServedJob::IsAbandoned(SteadyTime now, double seconds) const {
  const std::lock_guard lock(mutex_);
  const auto silence =
      std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(seconds));
  return gate_.LiveCount(now) == 0 && now > seen_ + silence;
}

}  // namespace dynamix
