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

#include "dynamix/core/action.h"
#include "dynamix/core/objective.h"
#include "dynamix/core/result.h"
#include "dynamix/ppo/actor_critic.h"

namespace dynamix {

struct PolicyModel {
  ActionOptions actions;
  Objective objective;                          // it was learned for
  std::optional<ActorCritic> local;             // present exactly when actions.local
  std::optional<ActorCritic> team;              // present exactly when actions.team
  std::map<std::string, std::string> training;  // what made it: seed, steps, scenario, date, ...
};

// Replaces `path` atomically; the file that was there stays as PreviousGeneration(path).
Status SavePolicy(const std::string& path, const PolicyModel& model);
Result<PolicyModel> LoadPolicy(const std::string& path);

std::string EncodePolicy(const PolicyModel& model);
Result<PolicyModel> DecodePolicy(std::string_view bytes);

// 16 hexadecimal digits.
std::string FormatHash(std::uint64_t hash);

}  // namespace dynamix
