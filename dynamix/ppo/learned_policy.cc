#include "dynamix/ppo/learned_policy.h"

#include <algorithm>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/features.h"
#include "dynamix/ppo/round_batch.h"

namespace dynamix {

LearnedPolicy::LearnedPolicy(PolicyModel model, Choice how, std::string name)
    : model_(std::move(model)), how_(how), name_(std::move(name)) {
  DYNAMIX_CHECK(!model_.local || model_.local->network.shape().actor_inputs == LocalWidth(),
                "the local network takes local rows");
  DYNAMIX_CHECK(!model_.team || model_.team->network.shape().actor_inputs == TeamWidth(),
                "the team network takes team rows");
  if (model_.local) local_.emplace(model_.local->network.shape());
  if (model_.team) team_.emplace(model_.team->network.shape());
}

Decisions LearnedPolicy::Decide(const Round& round, const States& states, Rng& rng) {
  const Actions hold{
      .team = kHold, .local = std::vector<int>(round.entries.size(), kHold), .team_factor = 1};
  Actions actions = hold;
  bool good = true;
  if (model_.team) good = DecideTeam(round, states, rng, actions) && good;
  if (model_.local) good = DecideLocal(round, states, rng, actions.local) && good;
  return good ? actions : hold;
}

bool LearnedPolicy::DecideTeam(const Round& round, const States& states, Rng& rng,
                               Actions& actions) {
  if (!Decides(round)) return true;
  const ActionMask mask = TeamMask(round, model_.actions);
  masks_.resize(kActionCount);
  std::copy(mask.begin(), mask.end(), masks_.begin());
  rows_.assign(1, 0);
  normalized_.resize(states.team.size());
  model_.team->actor_inputs.Apply(states.team, normalized_);
  team_->Choose(model_.team->network, normalized_, rows_, masks_, how_, rng, choices_);
  if (!choices_.finite) return false;
  actions.team = choices_.actions[0];
  actions.team_factor.reset();
  if (how_ == Choice::kGreedy)
    actions.team_factor =
        MeanTeamFactor(model_.actions.kind, choices_.probabilities, round, states.landmarks);
  return true;
}

bool LearnedPolicy::DecideLocal(const Round& round, const States& states, Rng& rng,
                                std::vector<int>& actions) {
  const std::size_t workers = round.entries.size();
  DYNAMIX_CHECK(states.local.size() == workers * LocalWidth(), "one local row per worker");
  rows_.clear();
  masks_.assign(workers * kActionCount, 0);
  for (std::size_t i = 0; i < workers; ++i) {
    const RoundEntry& entry = round.entries[i];
    if (!entry.Reported()) continue;
    rows_.push_back(static_cast<int>(i));
    const ActionMask mask = LocalMask(entry, model_.actions);
    std::copy(mask.begin(), mask.end(), masks_.begin() + i * kActionCount);
  }
  normalized_.resize(states.local.size());
  model_.local->actor_inputs.Apply(states.local, normalized_);
  local_->Choose(model_.local->network, normalized_, rows_, masks_, how_, rng, choices_);
  for (std::size_t k = 0; k < rows_.size(); ++k) actions[rows_[k]] = choices_.actions[k];
  return choices_.finite;
}

}  // namespace dynamix
