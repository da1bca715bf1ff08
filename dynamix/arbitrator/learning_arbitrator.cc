#include "dynamix/arbitrator/learning_arbitrator.h"

#include <algorithm>
#include <cmath>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr bool kPooledCritic = false;

std::vector<int> Batches(const Round& round) {
  std::vector<int> batches;
  for (const RoundEntry& entry : round.entries) batches.push_back(entry.batch);
  return batches;
}

std::vector<int> ColumnsOf(const std::vector<Column>& columns,
                           const std::vector<FeatureFamily>& families) {
  std::vector<int> chosen;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (std::find(families.begin(), families.end(), columns[c].family) != families.end())
      chosen.push_back(static_cast<int>(c));
  }
  return chosen;
}

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

}  // namespace

void LearningOptions::Validate() const {
  reward.Validate();
  RequireInRange("team_discount", team_discount, 0.0, 0.9999);
  RequireInRange("local_discount", local_discount, 0.0, 0.9999);
  RequireInRange("jobs", jobs, 1, 10000);
  RequireInRange("max_workers", max_workers, 1, 4096);
  RequireInRange("threads", threads, 1, 256);
}

LearnerOptions MakeLearnerOptions(const LearningOptions& options, const PpoOptions& team,
                                  const PpoOptions& local, const std::vector<int>& hidden,
                                  std::uint64_t seed) {
  const RoundBatch shapes(1, options.max_workers, options.actions, kPooledCritic);
  LearnerOptions learner;
  learner.seed = seed;
  learner.threads = options.threads > 1 ? 2 : 1;
  if (options.actions.team) {
    AgentOptions& head = learner.team.emplace();
    head.shape = shapes.TeamShape(hidden);
    head.rows = options.jobs;
    head.ppo = team;
    head.idle_action = kHold;
    head.actor_columns_off = ColumnsOf(TeamColumns(), options.families_off);
  }
  if (options.actions.local) {
    AgentOptions& head = learner.local.emplace();
    head.shape = shapes.LocalShape(hidden);
    head.rows = options.jobs * options.max_workers;
    head.ppo = local;
    head.idle_action = kHold;
    head.actor_columns_off = ColumnsOf(LocalColumns(), options.families_off);
  }
  return learner;
}

LearningArbitrator::LearningArbitrator(const LearningOptions& options, Learner& learner)
    : options_(options),
      learner_(learner),
      batch_(options.jobs, options.max_workers, options.actions, kPooledCritic),
      jobs_(options.jobs) {
  options_.Validate();
}

void LearningArbitrator::Start(int job, const Round& round) {
  jobs_[job].encoder.Reset();
  Observe(job, round);
}

void LearningArbitrator::Observe(int job, const Round& round) {
  jobs_[job].round = round;
  jobs_[job].states = jobs_[job].encoder.Encode(round);
  batch_.Set(job, round, jobs_[job].states);
}

void LearningArbitrator::Close(const std::vector<Round>& rounds,
                               const std::vector<WindowOutcome>& outcomes) {
  DYNAMIX_CHECK(decided_, "Close follows Decide");
  DYNAMIX_CHECK(rounds.size() == jobs_.size() && outcomes.size() == jobs_.size(),
                "one round and one outcome per job");
  decided_ = false;
  Outcomes team(options_.jobs), local(options_.jobs * options_.max_workers);
  std::vector<TeamReward> parts(jobs_.size());
  ParallelFor(options_.jobs, options_.threads, [&](int j) {
    const Rewards rewards = ComputeRewards(rounds[j], Batches(jobs_[j].round),
                                           outcomes[j].progress_seconds, options_.reward);
    parts[j] = rewards.team;
    // A rate times the window's length: the return is an integral over time.
    const double units = rounds[j].seconds / outcomes[j].time_scale_s;
    const double discount = std::pow(options_.team_discount, units);
    team.Set(j, rewards.team.total * units + outcomes[j].lump, discount, outcomes[j].end);
    for (int slot = 0; slot < options_.max_workers; ++slot) {
      const bool exists = slot < static_cast<int>(rewards.local.size());
      local.Set(j * options_.max_workers + slot, exists ? rewards.local[slot] * units : 0,
                std::pow(options_.local_discount, units), outcomes[j].end);
    }
    Observe(j, rounds[j]);
  });
  if (Agent* agent = learner_.team()) agent->Close(team.With(batch_.Team()));
  if (Agent* agent = learner_.local()) agent->Close(local.With(batch_.Local()));
  for (const TeamReward& part : parts) {
    reward_sum_.quality += part.quality;
    reward_sum_.efficiency += part.efficiency;
    reward_sum_.stability += part.stability;
    reward_sum_.total += part.total;
    ++reward_count_;
  }
}

std::optional<LearnerStatistics> LearningArbitrator::Update(double progress) {
  DYNAMIX_CHECK(!decided_, "Update follows Close");
  if (!learner_.Full()) return std::nullopt;
  return learner_.Update(batch_.Local(), batch_.Team(), progress);
}

std::vector<std::vector<int>> LearningArbitrator::Decide() {
  DYNAMIX_CHECK(!decided_, "Close the last decisions first");
  decided_ = true;
  static const std::vector<int> kNone;
  const std::vector<int>& team =
      learner_.team() != nullptr ? learner_.team()->Act(batch_.Team()) : kNone;
  const std::vector<int>& local =
      learner_.local() != nullptr ? learner_.local()->Act(batch_.Local()) : kNone;
  std::vector<std::vector<int>> sizes(jobs_.size());
  for (int j = 0; j < options_.jobs; ++j) {
    Job& job = jobs_[j];
    Actions& actions = job.actions;
    actions.team = team.empty() ? kHold : team[j];
    actions.team_factor.reset();
    if (!Decides(job.round)) actions.team_factor = 1;  // nobody reported
    actions.local.assign(job.round.entries.size(), kHold);
    if (!local.empty()) {
      const auto first = local.begin() + static_cast<std::ptrdiff_t>(j) * options_.max_workers;
      std::copy_n(first, actions.local.size(), actions.local.begin());
    }
    sizes[j] = Apply(job.round, job.states.shares, actions, options_.actions);
  }
  return sizes;
}

TeamReward LearningArbitrator::TakeMeanReward() {
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
