#include "dynamix/rpc/served_job.h"

#include <exception>
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

Status ServedJob::Join(const JoinMessage& message, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  Status joined =
      gate_.Join(message.worker.rank, message.worker.incarnation, message.next_window, now);
  if (!joined) return joined;
  if (message.worker.rank == 0) settings_ = message.settings;
  if (message.run != 0) run_ = message.run;
  seen_ = now;
  return joined;
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
    if (ended_ != Refusal::kNone)
      answers.push_back({std::move(reply), ended_, {}});
    else
      Enter(message, now, std::move(reply), answers);
  }
  for (const Answered& answer : answers) answer.reply(answer.refusal, answer.advice);
}

void ServedJob::Enter(const ReportMessage& message, SteadyTime now, Reply reply, Answers& answers) {
  const int rank = message.worker.rank;
  const auto add = [&] {
    return gate_.Add(rank, message.worker.incarnation, message.window, message.entry, now);
  };
  RoundGate::Arrival arrival = add();
  if (arrival == RoundGate::Arrival::kEndsOpen) {
    CloseRound(now, answers);
    arrival = add();
  }
  switch (arrival) {
    case RoundGate::Arrival::kWaits:
      if (Reply& old = waiting_[rank].reply; old)
        answers.push_back({std::move(old), Refusal::kSuperseded, {}});
      waiting_[rank] = {message.window, std::move(reply)};
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
      break;
    case RoundGate::Arrival::kTooFar:
    case RoundGate::Arrival::kEndsOpen:  // no round is open any more
      answers.push_back({std::move(reply), Refusal::kTooFar, {}});
  }
}

Decision ServedJob::Decide(const Round& round) {
  // A policy remembers the cluster it sees first, so that must be the whole one; but not for ever.
  Decision decision;
  try {
    if (gate_.AllHeard() || ++partial_rounds_ > kPartialRounds) return arbitrator_->Step(round);
  } catch (const std::exception& error) {
    decision.failure = error.what();
  }
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
  for (auto& [rank, waiting] : waiting_) {
    Advice advice = AdviceFor(rank);
    advice.window = waiting.window;
    answers.push_back({std::move(waiting.reply), Refusal::kNone, advice});
  }
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

void ServedJob::End(Refusal refusal) {
  std::map<int, Waiting> waiting;
  {
    const std::lock_guard lock(mutex_);
    ended_ = refusal;
    waiting.swap(waiting_);
  }
  for (const auto& [rank, each] : waiting) each.reply(refusal, {});
}

bool ServedJob::IsOtherRun(std::uint64_t run) const {
  const std::lock_guard lock(mutex_);
  return run != 0 && run_ != 0 && run != run_;
}

int ServedJob::LiveCount(SteadyTime now) const {
  const std::lock_guard lock(mutex_);
  return gate_.LiveCount(now);
}

SteadyTime ServedJob::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

}  // namespace dynamix
