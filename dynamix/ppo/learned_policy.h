// LearnedPolicy: a policy file at work. Frozen: the same weights and normalisers for every round.
//
// Late and inactive workers hold, and so does a head that is switched off. If any logit is not a
// number the whole round holds: a broken policy must never be worse than none. Decides 32 workers
// in microseconds (docs/ppo.md). Not thread-safe, like every Policy; nothing fails.
#pragma once

#include <string>

#include "dynamix/core/policy.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {

class LearnedPolicy : public Policy {
 public:
  // `model` as SavePolicy wrote it (LoadPolicy refuses one for other features). kGreedy takes the
  // likeliest legal local actions and the mean of the team's; kSample draws all of them, which is
  // how it was learned.
  LearnedPolicy(PolicyModel model, Choice how, std::string name = "learned");

  std::string_view name() const override { return name_; }
  Decisions Decide(const Round& round, const States& states, Rng& rng) override;
  double OpeningBatch(const Round& round) const override {
    return dynamix::OpeningBatch(round, model_.actions);
  }
  void Reset() override {}

  const PolicyModel& model() const { return model_; }

 private:
  // Both return false when a logit was not a number.
  bool DecideTeam(const Round& round, const States& states, Rng& rng, Actions& actions);
  bool DecideLocal(const Round& round, const States& states, Rng& rng, std::vector<int>& actions);

  PolicyModel model_;
  Choice how_;
  std::string name_;
  std::optional<Evaluator> local_, team_;
  std::vector<float> normalized_;
  std::vector<std::uint8_t> masks_;
  std::vector<int> rows_;
  Choices choices_;
};

}  // namespace dynamix
