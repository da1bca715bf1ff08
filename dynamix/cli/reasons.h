// Why a decision was made: the features that drove it.
//
// A learned policy's: influence of feature f on team action a = log p(a | state) - log p(a | state
// with f at its mean over the policy's training). Its local actions are not explained: they follow
// the measured shares. A rule's, and those of a policy whose file is gone: the features that moved
// most since the round before, in parts of their range.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dynamix/cli/run_record.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {

struct Reason {
  std::string feature;
  double value;      // now
  double influence;  // above 0: towards the decision; for rules the change since the round before
};

class Reasons {
 public:
  // `model` null: a rule.
  explicit Reasons(const PolicyModel* model);

  // The `most` strongest, strongest first. `previous` null: the first round.
  std::vector<Reason> Of(const RecordedRound& round, const RecordedRound* previous, int most);
  bool learned() const { return model_ != nullptr; }

 private:
  std::vector<Reason> Influences(const RecordedRound& round);

  const PolicyModel* model_;
  std::optional<Evaluator> team_;
};

// The file of a learned policy as the user named it; nothing for rules, and when the file is gone
// or was made for other features.
std::optional<PolicyModel> FindModel(const std::string& policy);

}  // namespace dynamix
