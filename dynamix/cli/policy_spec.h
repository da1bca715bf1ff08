// A policy as the user names it: a rule, a file, or a shipped policy by its stem ("default").
#pragma once

#include <string>
#include <vector>

#include "dynamix/core/policy_spec.h"

namespace dynamix {

// Throws InputError for an unknown name or a file that is refused, with the reason.
PolicySpec FindPolicy(const std::string& name);
// "a,b,c".
std::vector<PolicySpec> FindPolicies(const std::string& names);

}  // namespace dynamix
