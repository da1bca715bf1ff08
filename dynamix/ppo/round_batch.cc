#include "dynamix/ppo/round_batch.h"

#include <algorithm>

#include "dynamix/core/check.h"
#include "dynamix/core/features.h"

namespace dynamix {

bool Decides(const Round& round) {
  return std::any_of(round.entries.begin(), round.entries.end(),
                     [](const RoundEntry& entry) { return entry.Reported(); });
}

RoundBatch::RoundBatch(int environments, int slots, const ActionOptions& actions)
    : slots_(slots), actions_(actions) {
  const std::size_t rows = static_cast<std::size_t>(environments) * slots;
  const auto missing = static_cast<float>(kMissing);
  local_rows_.assign(rows * LocalWidth(), missing);
  team_rows_.assign(static_cast<std::size_t>(environments) * TeamWidth(), missing);
  local_active_.assign(rows, 0);
  team_active_.assign(environments, 0);
  local_masks_.assign(rows * kActionCount, 1);
  team_masks_.assign(static_cast<std::size_t>(environments) * kActionCount, 1);
}

NetworkShape RoundBatch::LocalShape(const std::vector<int>& hidden) const {
  return {
      .actor_inputs = LocalWidth(), .critic_inputs = 0, .hidden = hidden, .heads = {kActionCount}};
}

NetworkShape RoundBatch::TeamShape(const std::vector<int>& hidden) const {
  return {
      .actor_inputs = TeamWidth(), .critic_inputs = 0, .hidden = hidden, .heads = {kActionCount}};
}

void RoundBatch::Set(int environment, const Round& round, const States& states) {
  const auto workers = static_cast<int>(round.entries.size());
  DYNAMIX_CHECK(workers <= slots_, "an environment has at most as many workers as slots");
  const std::size_t width = LocalWidth(), team_width = TeamWidth();
  const std::size_t first = static_cast<std::size_t>(environment) * slots_;
  std::fill_n(local_active_.begin() + first, slots_, 0);
  std::fill_n(local_rows_.begin() + first * width, slots_ * width, static_cast<float>(kMissing));
  std::copy_n(states.local.begin(), workers * width, local_rows_.begin() + first * width);
  std::copy_n(states.team.begin(), team_width, team_rows_.begin() + environment * team_width);
  for (int slot = 0; slot < workers; ++slot) {
    const RoundEntry& entry = round.entries[slot];
    local_active_[first + slot] = entry.Reported() ? 1 : 0;
    const ActionMask mask = LocalMask(entry, actions_);
    std::copy(mask.begin(), mask.end(), local_masks_.begin() + (first + slot) * kActionCount);
  }
  team_active_[environment] = Decides(round) ? 1 : 0;
  const ActionMask mask = TeamMask(round, actions_);
  std::copy(mask.begin(), mask.end(), team_masks_.begin() + environment * kActionCount);
}

Observation RoundBatch::Local() const { return {local_rows_, {}, local_active_, local_masks_}; }

Observation RoundBatch::Team() const { return {team_rows_, {}, team_active_, team_masks_}; }

std::span<const float> CriticRows(const Observation& observation) {
  return observation.critic_rows.empty() ? observation.actor_rows : observation.critic_rows;
}

}  // namespace dynamix
