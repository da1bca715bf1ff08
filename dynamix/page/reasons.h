// Why a decision was made: the features that drove it.
//
// Of a learned policy, the influence of feature f on the team's decision:
//
//   log2(factor on the global batch in this state)
//   - log2(that factor with f at its mean over the policy's training)
//
// so +1 doubles the global batch. Every team head has its say, as in the decision. Local actions
// are not explained: they follow the measured shares.
//
// Of a rule, of additive actions (which have no factor) and of a policy whose file is gone: the
// features that moved most since the round before, in parts of their range.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dynamix/ppo/policy_file.h"
#include "dynamix/record/run_record.h"

namespace dynamix {

struct Reason {
  std::string feature;
  double value;      // now
  double influence;  // above 0: towards a larger batch; for rules the change of the feature
};

class Reasons {
 public:
  // `model` null: a rule.
  explicit Reasons(const PolicyModel* model);

  // The `most` strongest, strongest first. `previous` null: the first round.
  std::vector<Reason> Of(const RecordedRound& round, const RecordedRound* previous, int most);
  // True: influences are on the batch. False: changes of features.
  bool learned() const { return !teams_.empty(); }

 private:
  struct Head {
    const ActorCritic* team;
    Evaluator evaluator;
  };
  std::vector<Reason> Influences(const RecordedRound& round);
  void AddLogFactors(Head& head, std::span<const float> state, std::vector<double>& log_factors);

  ActionKind kind_ = ActionKind::kAdditive;
  std::vector<Head> teams_;
};

}  // namespace dynamix
