#include "dynamix/ppo/agent.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

// Rollouts the scale of the returns remembers: returns grow as a policy gets better.
constexpr double kReturnMemory = 10;
// Of the first action, the others' being about 0: 69 % of the steps with five actions.
constexpr float kFirstLogit = 2.2F;

std::vector<int> ActiveRows(std::span<const std::uint8_t> active, std::size_t count) {
  std::vector<int> rows;
  rows.reserve(count);
  for (std::size_t row = 0; row < count; ++row)
    if (active.empty() || active[row] != 0) rows.push_back(static_cast<int>(row));
  return rows;
}

double Variance(std::span<const double> values) {
  if (values.empty()) return 0;
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double x : values) squares += (x - mean) * (x - mean);
  return squares / n;
}

void RequireColumns(const char* field, const std::vector<int>& columns, int width) {
  for (const int column : columns) RequireInRange(field, column, 0, width - 1);
}

}  // namespace

void AgentOptions::Validate() const {
  shape.Validate();
  ppo.Validate();
  RequireInRange("rows", rows, 1, 1000000);
  RequireInRange("first_action", first_action, -1, shape.heads.front() - 1);
  RequireColumns("actor_columns_off", actor_columns_off, shape.actor_inputs);
  RequireColumns("critic_columns_off", critic_columns_off, shape.critic_inputs);
}

double RewardScaler::Update(const Rollout& rollout) {
  const std::size_t rows = rollout.rows();
  std::vector<double> seen;
  seen.reserve(rollout.rewards.size());
  for (std::size_t i = 0; i < rollout.rewards.size(); ++i) {
    double& carry = running[i % rows];
    carry += rollout.rewards[i];
    if (rollout.active[i] != 0) seen.push_back(carry);
    carry = rollout.ends[i] == StepEnd::kContinues ? carry * rollout.discounts[i] : 0;
  }
  moments.Update(seen);
  return 1 / moments.Deviation();
}

Agent::Agent(const AgentOptions& options, std::uint64_t seed)
    : options_((options.Validate(), options)),
      rng_(seed),
      model_(options.shape),
      adam_(model_.network.parameters().size()),
      scaler_{std::vector<double>(options.rows), {}},
      rollout_(options.shape, options.ppo.steps, options.rows),
      evaluator_(options.shape),
      loss_(model_.network) {
  model_.network.Initialize(rng_);
  if (options.first_action >= 0)
    model_.network.parameters()[model_.network.policy().back().bias + options.first_action] =
        kFirstLogit;
  model_.actor_inputs.SwitchOff(options.actor_columns_off);
  model_.critic_inputs.SwitchOff(options.critic_columns_off);
}

const std::vector<int>& Agent::Act(const Observation& observation) {
  DYNAMIX_CHECK(!rollout_.Full(), "a full rollout is learned from before the next step");
  const bool own_critic = options_.shape.critic_inputs > 0;
  if (options_.ppo.normalize_inputs) {
    model_.actor_inputs.Update(observation.actor_rows, observation.active);
    if (own_critic) model_.critic_inputs.Update(observation.critic_rows, observation.active);
  }
  const std::span<float> actor_rows = rollout_.ActorRows();
  model_.actor_inputs.Apply(observation.actor_rows, actor_rows);
  if (own_critic) model_.critic_inputs.Apply(observation.critic_rows, rollout_.CriticRows());

  const std::vector<int> rows = ActiveRows(observation.active, options_.rows);
  evaluator_.Choose(model_.network, actor_rows, rows, observation.masks, Choice::kSample, rng_,
                    choices_);
  DYNAMIX_CHECK(choices_.finite, "the weights stay finite while learning");
  const std::vector<double> values = Values(own_critic ? rollout_.CriticRows() : actor_rows, rows);
  rollout_.Open(rows, observation.masks, choices_.actions, choices_.log_probs, values);

  const std::size_t heads = options_.shape.heads.size();
  actions_.assign(options_.rows * heads, options_.idle_action);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy_n(&choices_.actions[i * heads], heads, &actions_[rows[i] * heads]);
  return actions_;
}

void Agent::Close(const Outcome& outcome) {
  std::vector<int> truncated;
  for (std::size_t row = 0; row < outcome.ends.size(); ++row)
    if (outcome.ends[row] == StepEnd::kTruncated) truncated.push_back(static_cast<int>(row));
  std::vector<double> bootstraps(options_.rows);
  if (!truncated.empty()) {
    const bool own_critic = options_.shape.critic_inputs > 0;
    DYNAMIX_CHECK(outcome.final_rows.size() ==
                      static_cast<std::size_t>(options_.rows) * options_.shape.critic_width(),
                  "a truncated row comes with its final state");
    std::vector<float> normalized(outcome.final_rows.size());
    (own_critic ? model_.critic_inputs : model_.actor_inputs).Apply(outcome.final_rows, normalized);
    const std::vector<double> values = Values(normalized, truncated);
    for (std::size_t i = 0; i < truncated.size(); ++i) bootstraps[truncated[i]] = values[i];
  }
  rollout_.Close(outcome, bootstraps);
}

UpdateStatistics Agent::Update(const Observation& next, double learned_share) {
  DYNAMIX_CHECK(rollout_.Full(), "an update needs a full rollout");
  UpdateStatistics before;
  const Advantages advantages = RolloutAdvantages(next, before);
  std::vector<int> rows = ActiveRows(rollout_.active, rollout_.active.size());
  if (options_.ppo.normalize_values) UpdateReturnScale(advantages, rows);

  const double mean = model_.returns.mean, scale = 1 / model_.returns.Deviation();
  std::vector<float> returns(advantages.returns.size()), old_values(returns.size());
  for (std::size_t i = 0; i < returns.size(); ++i) {
    returns[i] = static_cast<float>((advantages.returns[i] - mean) * scale);
    old_values[i] = static_cast<float>((rollout_.values[i] - mean) * scale);
  }
  const std::vector<float> signal(advantages.advantages.begin(), advantages.advantages.end());
  const Samples<float> samples{.actor_rows = rollout_.actor_rows,
                               .critic_rows = rollout_.critic_rows,
                               .actions = rollout_.actions,
                               .masks = rollout_.masks,
                               .log_probs = rollout_.log_probs,
                               .advantages = signal,
                               .returns = returns,
                               .values = old_values};
  UpdateStatistics statistics =
      UpdateNetwork(model_.network, adam_, loss_, samples, rows, options_.ppo, learned_share, rng_);
  statistics.explained_variance = before.explained_variance;
  statistics.mean_reward = before.mean_reward;
  statistics.reward_scale = before.reward_scale;
  rollout_.Clear();
  ++updates_;
  return statistics;
}

void Agent::Adopt(const ActorCritic& model) {
  DYNAMIX_CHECK(model.network.shape() == options_.shape, "an adopted model has the agent's shape");
  model_ = model;
  adam_ = Adam<float>(model_.network.parameters().size());
}

void Agent::SetState(const State& state) {
  DYNAMIX_CHECK(state.model.network.shape() == options_.shape &&
                    state.scaler.running.size() == static_cast<std::size_t>(options_.rows),
                "a state is restored into an agent of the same shape");
  model_ = state.model;
  adam_ = state.adam;
  scaler_ = state.scaler;
  rng_ = state.rng;
  updates_ = state.updates;
  rollout_.Clear();
}

std::vector<double> Agent::Values(std::span<const float> normalized, std::span<const int> rows) {
  std::vector<double> values(rows.size());
  evaluator_.Values(model_.network, normalized, rows, values);
  const double scale = model_.returns.Deviation();
  for (double& value : values) value = value * scale + model_.returns.mean;
  return values;
}

std::vector<double> Agent::LastValues(const Observation& next) {
  const bool own_critic = options_.shape.critic_inputs > 0;
  const std::span<const float> rows = own_critic ? next.critic_rows : next.actor_rows;
  std::vector<float> normalized(rows.size());
  (own_critic ? model_.critic_inputs : model_.actor_inputs).Apply(rows, normalized);
  return Values(normalized, ActiveRows({}, options_.rows));
}

Advantages Agent::RolloutAdvantages(const Observation& next, UpdateStatistics& statistics) {
  const std::size_t size = rollout_.rewards.size();
  if (options_.ppo.scale_rewards) statistics.reward_scale = scaler_.Update(rollout_);
  std::vector<double> rewards(size);
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < size; ++i) {
    rewards[i] = rollout_.rewards[i] * statistics.reward_scale;
    if (rollout_.active[i] == 0) continue;
    sum += rollout_.rewards[i];
    count += 1;
  }
  statistics.mean_reward = sum / std::max(count, 1.0);
  const std::vector<double> last_values = LastValues(next);
  Advantages result = ComputeAdvantages({.steps = rollout_.steps(),
                                         .rows = rollout_.rows(),
                                         .rewards = rewards,
                                         .values = rollout_.values,
                                         .discounts = rollout_.discounts,
                                         .ends = rollout_.ends,
                                         .bootstraps = rollout_.bootstraps,
                                         .active = rollout_.active,
                                         .last_values = last_values},
                                        options_.ppo.lambda);
  std::vector<double> returns, errors;
  for (std::size_t i = 0; i < size; ++i) {
    if (rollout_.active[i] == 0) continue;
    returns.push_back(result.returns[i]);
    errors.push_back(result.advantages[i]);
  }
  const double variance = Variance(returns);
  statistics.explained_variance = variance > 0 ? 1 - Variance(errors) / variance : 0;
  return result;
}

void Agent::UpdateReturnScale(const Advantages& advantages, std::span<const int> rows) {
  std::vector<double> returns;
  returns.reserve(rows.size());
  for (const int row : rows) returns.push_back(advantages.returns[row]);
  RunningMoments moments = model_.returns;
  moments.Update(returns);
  moments.count = std::min(moments.count, kReturnMemory * static_cast<double>(returns.size()) + 1);
  model_.Rescale(moments);
}

}  // namespace dynamix
