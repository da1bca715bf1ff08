// A policy as the user names it: a rule, a file, or a shipped policy by its stem ("default").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/core/policy.h"

namespace dynamix {

struct PolicySpec {
  std::string name;       // as shown in tables
  ActionOptions actions;  // of a learned policy; rules name sizes
  // A new policy for a new job. Thread-safe; a loaded file is shared, read-only, between the
  // policies made.
  std::function<std::unique_ptr<Policy>()> make;
};

// Throws InputError for an unknown name or a file that is refused, with the reason.
PolicySpec FindPolicy(const std::string& name);
// "a,b,c".
std::vector<PolicySpec> FindPolicies(const std::string& names);

}  // namespace dynamix
