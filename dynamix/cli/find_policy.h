// A policy as the user names it: a rule, a file, or a shipped policy by its stem ("default").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dynamix/core/policy_spec.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {

// Throws InputError for an unknown name, with all names that are known, and for a file that is
// refused, with the reason.
PolicySpec FindPolicy(const std::string& name);
// A rule or a shipped policy, never another file: for names that come over the network. Throws
// InputError likewise.
PolicySpec FindNamedPolicy(const std::string& name);
// "a,b,c", for evaluations; names may follow the prefixes "guarded:" and "steps:", in this order.
std::vector<PolicySpec> FindPolicies(const std::string& names);

// The file of a learned policy as the user named it, prefixes or not; nothing for rules, and when the
// file is gone or was made for other features.
std::optional<PolicyModel> FindModel(const std::string& name);

}  // namespace dynamix
