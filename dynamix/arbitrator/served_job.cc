#include "dynamix/arbitrator/served_job.h"

#include <exception>
#include <utility>

namespace dynamix {
namespace {

std::vector<int> Batches(const Round& round) {
  std::vector<int> batches;
  for (const RoundEntry& entry : round.entries) batches.push_back(entry.batch);
  return batches;
}

}  // namespace

ServedJob::ServedJob(const PolicySpec& policy, ServedJobOptions options)
    : name_(policy.name),
      policy_(policy.make()),
      arbitrator_(*policy_, policy.actions, Rng(options.seed)),
      guard_(options.guard),
      progress_(std::move(options.curve)),
      learner_(std::move(options.learner)) {}

ServedJob::~ServedJob() = default;

void ServedJob::SetPolicy(const PolicySpec& policy) {
  std::unique_ptr<Policy> fresh = policy.make();
  arbitrator_.SetPolicy(*fresh, policy.actions);
  policy_ = std::move(fresh);
  name_ = policy.name;
  guard_.Reset();
}

std::vector<int> ServedJob::Decide(const Round& round, Decision& decision) {
  try {
    // The policy sees every round, also those in which the guard does not follow it.
    const std::vector<int> wanted =
        learner_ ? learner_->Step(round, {decision.progress_seconds, progress_.TimeScale(),
                                          decision.guard == Guard::State::kAdvises})
                 : arbitrator_.Step(round);
    if (learner_ == nullptr) {
      decision.states = arbitrator_.states();
      decision.decisions = arbitrator_.decisions();
    } else if (!learner_->updating()) {
      decision.states = learner_->states();
      decision.decisions = learner_->actions();
    }
    if (wanted.size() == round.entries.size()) return wanted;
    decision.failure = "the policy named another number of workers";
  } catch (const std::exception& error) {
    decision.failure = error.what();
  }
  return Batches(round);
}

Decision ServedJob::Step(const Round& round) {
  Decision decision;
  decision.policy = name_;
  decision.progress_seconds = progress_.Advance(round);
  decision.guard = guard_.Observe(round);
  decision.useful_rate = guard_.rate();
  decision.sizes = Decide(round, decision);
  if (decision.guard == Guard::State::kMeasures) decision.sizes = Batches(round);
  if (decision.guard == Guard::State::kFallsBack) decision.sizes = guard_.good_batches();
  for (std::size_t i = 0; i < decision.sizes.size(); ++i)
    decision.sizes[i] =
        ClampBatch(decision.sizes[i], round.entries[i].batch, round.entries[i].bounds);
  return decision;
}

}  // namespace dynamix
