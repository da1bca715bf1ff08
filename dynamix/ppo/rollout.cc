#include "dynamix/ppo/rollout.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {

Rollout::Rollout(const NetworkShape& shape, int steps, int rows)
    : steps_(steps),
      rows_(rows),
      actor_width_(shape.actor_inputs),
      critic_width_(shape.critic_inputs),
      heads_(static_cast<int>(shape.heads.size())),
      logits_(shape.logit_count()) {
  const std::size_t size = static_cast<std::size_t>(steps) * rows;
  actor_rows.resize(size * actor_width_);
  critic_rows.resize(size * critic_width_);
  active.resize(size);
  actions.resize(size * heads_);
  log_probs.resize(size);
  values.resize(size);
  rewards.resize(size);
  discounts.resize(size);
  bootstraps.resize(size);
  ends.resize(size);
}

void Rollout::Open(std::span<const int> active_rows, std::span<const std::uint8_t> step_masks,
                   std::span<const int> step_actions, std::span<const float> step_log_probs,
                   std::span<const double> step_values) {
  DYNAMIX_CHECK(!Full() && !IsOpen(), "a step is closed before the next one is opened");
  if (masks.empty() && !step_masks.empty())
    masks.assign(static_cast<std::size_t>(steps_) * rows_ * logits_, 1);
  if (!masks.empty()) {
    const std::span<std::uint8_t> to = StepPart(masks, logits_, opened_);
    if (step_masks.empty()) {
      std::fill(to.begin(), to.end(), 1);
    } else {
      std::copy(step_masks.begin(), step_masks.end(), to.begin());
    }
  }
  const std::size_t first = static_cast<std::size_t>(opened_) * rows_;
  std::fill_n(active.begin() + first, rows_, 0);
  std::fill_n(values.begin() + first, rows_, 0);
  for (std::size_t i = 0; i < active_rows.size(); ++i) {
    const std::size_t at = first + active_rows[i];
    active[at] = 1;
    log_probs[at] = step_log_probs[i];
    values[at] = step_values[i];
    std::copy_n(&step_actions[i * heads_], heads_, &actions[at * heads_]);
  }
  ++opened_;
}

void Rollout::Close(const Outcome& outcome, std::span<const double> step_bootstraps) {
  DYNAMIX_CHECK(IsOpen(), "a step is opened before it is closed");
  const auto count = static_cast<std::size_t>(rows_);
  DYNAMIX_CHECK(outcome.rewards.size() == count && outcome.discounts.size() == count &&
                    (outcome.ends.empty() || outcome.ends.size() == count) &&
                    step_bootstraps.size() == count,
                "an outcome has one entry per row");
  const std::size_t first = static_cast<std::size_t>(closed_) * rows_;
  for (int row = 0; row < rows_; ++row) {
    const std::size_t at = first + row;
    const bool known = std::isfinite(outcome.rewards[row]);
    rewards[at] = known ? outcome.rewards[row] : 0;
    if (!known) active[at] = 0;
    discounts[at] = outcome.discounts[row];
    ends[at] = outcome.ends.empty() ? StepEnd::kContinues : outcome.ends[row];
    bootstraps[at] = step_bootstraps[row];
  }
  ++closed_;
}

}  // namespace dynamix
