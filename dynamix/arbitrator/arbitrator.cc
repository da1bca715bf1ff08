#include "dynamix/arbitrator/arbitrator.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/core/check.h"

namespace dynamix {
namespace {

// Rewards, discounts and ends of one head's rows.
struct Outcomes {
  explicit Outcomes(int rows) : rewards(rows), discounts(rows), ends(rows) {}
  std::vector<double> rewards, discounts;
  std::vector<StepEnd> ends;

  void Set(int row, double reward, double discount, StepEnd end) {
    rewards[row] = reward;
    discounts[row] = discount;
    ends[row] = end;
  }
  Outcome With(const Observation& final_rows) const {
    return {rewards, discounts, ends, CriticRows(final_rows)};
  }
};

LearningOptions OneJob(const PolicySpec& policy) {
  LearningOptions options;
  options.actions = policy.actions;
  options.objective = policy.objective;
  options.jobs = options.threads = 1;
  return options;
}

}  // namespace

std::vector<int> Arbitrator::Open(const Round& round) const {
  return dynamix::Open(round, policy_ != nullptr ? policy_->OpeningBatch(round)
                                                 : OpeningBatch(round, options_.actions));
}

// The loop, for a job whose truth is known. The guard has the last word.
Decision Arbitrator::Step(const Round& round, const WindowOutcome& outcome) {
  advise_ = guard_.Observe(round) == Guard::State::kAdvises;
  Close({round}, {outcome});  // reports to states; reward of the last one
  Update(0);                  // PPO, when the rollout is full
  std::vector<int> sizes = std::move(Decide().front());  // states to actions to batches
  Decision decision = Describe(slots_.front());
  decision.progress_seconds = outcome.progress_seconds;
  decision.sizes = std::move(sizes);
  return Guarded(round, std::move(decision));
}

// The loop, for a live job: progress comes from its reports, and a policy that fails costs advice.
Decision Arbitrator::Step(const Round& round) {
  const WindowOutcome outcome{clock_.Advance(round), clock_.TimeScale(), StepEnd::kContinues, 0};
  try {
    return Step(round, outcome);
  } catch (const std::exception& error) {
    Decision decision = Describe(slots_.front());
    decision.sizes = Batches(round);
    decision.failure = error.what();
    return Guarded(round, std::move(decision));
  }
}

Decision Arbitrator::Guarded(const Round& round, Decision decision) const {
  decision.guard = guard_.state();
  decision.standing = guard_.standing();
  if (decision.guard == Guard::State::kMeasures) decision.sizes = Batches(round);
  if (decision.guard == Guard::State::kFallsBack) decision.sizes = guard_.batches();
  for (std::size_t i = 0; i < decision.sizes.size(); ++i)
    decision.sizes[i] =
        ClampBatch(decision.sizes[i], round.entries[i].batch, round.entries[i].bounds);
  return decision;
}

void Arbitrator::Close(const std::vector<Round>& rounds,
                       const std::vector<WindowOutcome>& outcomes) {
  DYNAMIX_CHECK(rounds.size() == slots_.size() && outcomes.size() == slots_.size(),
                "one round and one outcome per job");
  if (online_ != nullptr) learns_ = !online_->busy();
  ParallelFor(static_cast<int>(slots_.size()), options_.threads, [&](int j) {
    Slot& slot = slots_[j];
    const bool first = slot.round.entries.size() != rounds[j].entries.size();
    slot.rewards = ComputeRewards(rounds[j], Batches(first ? rounds[j] : slot.round),
                                  outcomes[j].progress_seconds, options_.objective.reward);
    Observe(j, rounds[j]);
  });
  if (open_ && learns_) CloseTransitions(outcomes);
}

void Arbitrator::CloseTransitions(const std::vector<WindowOutcome>& outcomes) {
  open_ = false;
  const int workers = options_.max_workers;
  Outcomes team(options_.jobs), local(options_.jobs * workers);
  for (int j = 0; j < options_.jobs; ++j) {
    const Rewards& rewards = slots_[j].rewards;
    // A rate times the window's length: the return is an integral over time.
    const double units = slots_[j].round.seconds / outcomes[j].time_scale_s;
    team.Set(j, rewards.team.total * units + outcomes[j].lump,
             std::pow(options_.objective.team_discount, units), outcomes[j].end);
    const double discount = std::pow(options_.objective.local_discount, units);
    for (int w = 0; w < workers; ++w) {
      const bool exists = w < static_cast<int>(rewards.local.size());
      local.Set(j * workers + w, exists ? rewards.local[w] * units : 0, discount, outcomes[j].end);
    }
    reward_sum_.quality += rewards.team.quality;
    reward_sum_.efficiency += rewards.team.efficiency;
    reward_sum_.stability += rewards.team.stability;
    reward_sum_.total += rewards.team.total;
    ++reward_count_;
  }
  if (Agent* agent = learner_->team()) agent->Close(team.With(batch_->Team()));
  if (Agent* agent = learner_->local()) agent->Close(local.With(batch_->Local()));
}

void Arbitrator::Start(int job, const Round& round) {
  slots_[job].encoder.Reset();
  Observe(job, round);
}

void Arbitrator::Observe(int job, const Round& round) {
  Slot& slot = slots_[job];
  slot.round = round;
  slot.states = slot.encoder.Encode(round);
  if (learns_) batch_->Set(job, round, slot.states);
}

std::optional<LearnerStatistics> Arbitrator::Update(double learned_share) {
  if (!learns_ || !learner_->Full()) return std::nullopt;
  DYNAMIX_CHECK(!open_, "Update follows Close");
  if (online_ == nullptr) return learner_->Update(batch_->Local(), batch_->Team(), learned_share);
  online_->StartUpdate(batch_->Local(), batch_->Team());
  learns_ = false;
  return std::nullopt;
}

std::vector<std::vector<int>> Arbitrator::Decide() {
  DYNAMIX_CHECK(!open_, "Close the last decisions first");
  Slot& first = slots_.front();
  if (policy_ != nullptr) {
    // Also while the guard does not follow it: a policy sees every round.
    first.decisions = policy_->Decide(first.round, first.states, rng_);
  } else if (learns_ && advise_) {
    DecideByLearner();
  } else {
    const std::vector<int> batches = Batches(first.round);
    first.decisions = Sizes{{batches.begin(), batches.end()}};
  }
  std::vector<std::vector<int>> sizes;
  for (const Slot& slot : slots_)
    sizes.push_back(Apply(slot.round, slot.states, slot.decisions, options_.actions));
  return sizes;
}

void Arbitrator::DecideByLearner() {
  open_ = true;
  static const std::vector<int> kNone;
  const std::vector<int>& team =
      learner_->team() != nullptr ? learner_->team()->Act(batch_->Team()) : kNone;
  const std::vector<int>& local =
      learner_->local() != nullptr ? learner_->local()->Act(batch_->Local()) : kNone;
  for (int j = 0; j < options_.jobs; ++j) {
    Slot& slot = slots_[j];
    Actions actions{.team = team.empty() ? kHold : team[j], .local = {}};
    if (!Decides(slot.round)) actions.team_factor = 1;  // nobody reported
    actions.local.assign(slot.round.entries.size(), kHold);
    if (!local.empty()) {
      const auto first = local.begin() + static_cast<std::ptrdiff_t>(j) * options_.max_workers;
      std::copy_n(first, actions.local.size(), actions.local.begin());
    }
    slot.decisions = std::move(actions);
  }
}

Decision Arbitrator::Describe(const Slot& slot) const {
  Decision decision;
  decision.policy = name_;
  decision.states = slot.states;
  decision.decisions = slot.decisions;
  decision.rewards = slot.rewards;
  return decision;
}

Arbitrator::Arbitrator(const PolicySpec& policy, ArbitratorOptions options)
    : options_(OneJob(policy)),
      slots_(1),
      name_(policy.name),
      rng_(options.seed),
      guard_(options.guard),
      clock_(std::move(options.curve), policy.objective.units_per_run),
      online_(std::move(options.learner)) {
  if (online_ == nullptr) {
    policy_ = policy.make();
    return;
  }
  options_ = online_->options();
  learner_ = &online_->learner();
  batch_.emplace(1, options_.max_workers, options_.actions);
  learns_ = true;
}

Arbitrator::Arbitrator(const LearningOptions& options, Learner& learner)
    : options_(options), slots_(options.jobs), learner_(&learner) {
  options_.Validate();
  batch_.emplace(options.jobs, options.max_workers, options.actions);
  learns_ = true;
}

void Arbitrator::SetPolicy(const PolicySpec& policy) {
  std::unique_ptr<Policy> fresh = policy_ != nullptr ? policy.make() : nullptr;  // may throw
  name_ = policy.name;
  guard_.Reset();
  if (policy_ == nullptr) return;
  policy_ = std::move(fresh);
  options_.actions = policy.actions;
  options_.objective = policy.objective;
}

void Arbitrator::VisitMemory(Memory& memory) {
  DYNAMIX_CHECK(policy_ != nullptr, "a learner is saved by itself");
  Slot& slot = slots_.front();
  Rng::State words = rng_.state();
  std::vector<int> batches = Batches(slot.round);
  std::string name = name_;
  Memory own;  // of the policy
  own(*policy_);
  std::vector<double> numbers = own.numbers();
  memory(slot.encoder, words, batches, clock_, guard_, name, numbers);
  rng_ = Rng(words);
  slot.round.entries.resize(batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) slot.round.entries[i].batch = batches[i];
  if (name != name_) return guard_.Reset();
  Memory read(std::move(numbers));
  read(*policy_);
  read.ExpectEnd();
}

TeamReward Arbitrator::TakeMeanReward() {
  TeamReward mean = reward_sum_;
  if (reward_count_ > 0) {
    const double count = static_cast<double>(reward_count_);
    for (double* part : {&mean.quality, &mean.efficiency, &mean.stability, &mean.total})
      *part /= count;
  }
  reward_sum_ = {};
  reward_count_ = 0;
  return mean;
}

}  // namespace dynamix
