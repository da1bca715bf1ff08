// Why a decision was made: the features that drove it.
//
// Of a learned policy, the influence of feature f on the team's decision:
//
//   log2(factor on the global batch in this state)
//   - log2(that factor with f at its mean over the policy's training)
//
// so +1 doubles the global batch. Local actions are not explained: they follow the measured shares.
//
// Of a rule: the measurements that it reads, with their values in the round (docs/rules.md).
//
// Of additive actions (which have no factor) and of a policy whose file is gone nothing is known; what
// is told is only what changed: the features that moved most since the round before, in parts of
// their range.
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
  double value;  // now
  // Above 0: towards a larger batch; where only changes are told, the feature's change; missing for
  // the inputs of a rule and for the place that guided actions are named after.
  double influence;
};

class Reasons {
 public:
  // `policy` as the user named it; `model` null: a rule, or a file that is gone. The model outlives
  // this object.
  Reasons(const std::string& policy, const PolicyModel* model);

  // The `most` strongest, strongest first; of guided actions after the place they are named after. `previous` null: the first round.
  std::vector<Reason> Of(const RecordedRound& round, const RecordedRound* previous, int most);
  // What heads a column of reasons, and a sentence about its numbers.
  std::string Title() const;
  std::string Explanation() const;
  // Of the policy's actions.
  ActionKind kind() const { return kind_; }

 private:
  bool learned() const { return evaluator_.has_value(); }
  std::vector<Reason> Influences(const RecordedRound& round);
  std::vector<double> LogFactors(std::span<const float> state);

  std::string rule_;  // its name without constants; empty: not a rule
  ActionKind kind_ = ActionKind::kRelative;
  const ActorCritic* team_ =
      nullptr;  // with its evaluator: a learned policy whose actions have factors
  std::optional<Evaluator> evaluator_;
};

}  // namespace dynamix
