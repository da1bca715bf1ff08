// A policy file: the networks of a learned policy with everything needed to serve it, in the layout
// of tensor_file.h.
//
//   metadata
//     format               "dynamix.policy"
//     version              "1"
//     features             FeatureHash(), 16 hexadecimal digits
//     actions              Format(ActionOptions)
//     objective            Format(Objective); absent: the defaults
//     training.KEY         free text: what made it
//   metadata and tensors (model_tensors.h)
//     local.*              the local head
//     team.*               the team head
//     team2.*, team3.*     further team heads
//
// Loading executes nothing. A file that is damaged, cut, of another version or made for another
// feature list is an Error that says so; whoever holds a policy keeps it. Pure functions, except
// that they read and write the named file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/core/objective.h"
#include "dynamix/core/result.h"
#include "dynamix/ppo/actor_critic.h"

namespace dynamix {

inline constexpr int kMostTeams = 9;

struct PolicyModel {
  ActionOptions actions;
  Objective objective;               // it was learned for
  std::optional<ActorCritic> local;  // present exactly when actions.local
  std::optional<ActorCritic> team;   // present exactly when actions.team
  // Team heads learned from other seeds. In use the team's decision is the mean over all of them:
  // what one run of learning got wrong by chance, the others outvote.
  std::vector<ActorCritic> more_teams;          // at most kMostTeams - 1
  std::map<std::string, std::string> training;  // what made it: seed, steps, scenario, date, ...
};

// Replaces `path` atomically; the file that was there stays as PreviousGeneration(path).
Status SavePolicy(const std::string& path, const PolicyModel& model);
Result<PolicyModel> LoadPolicy(const std::string& path);

std::string EncodePolicy(const PolicyModel& model);
Result<PolicyModel> DecodePolicy(std::string_view bytes);

// One policy of several that were learned apart: the team heads of all, the local head of the
// first. An Error when there are too many, or when their actions differ.
Result<PolicyModel> MergePolicies(std::vector<PolicyModel> models);

// "team" and, for the heads after it, "team2", "team3", ...
std::string TeamPrefix(std::size_t head);

// 16 hexadecimal digits.
std::string FormatHash(std::uint64_t hash);

}  // namespace dynamix
