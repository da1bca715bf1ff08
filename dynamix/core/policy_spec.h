// A policy that can be made as often as there are jobs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "dynamix/core/action.h"
#include "dynamix/core/objective.h"
#include "dynamix/core/policy.h"

namespace dynamix {

// In front of a policy's name: the policy under the guard (arbitrator/guard.h), in evaluations.
inline constexpr std::string_view kGuardedPrefix = "guarded:";
// And: its jobs' schedules run by steps (ScheduleClock).
inline constexpr std::string_view kStepsPrefix = "steps:";

// The policy's own name.
inline std::string WithoutPrefixes(std::string_view name) {
  for (const std::string_view prefix : {kGuardedPrefix, kStepsPrefix})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return std::string(name);
}

struct PolicySpec {
  std::string name;       // as shown in tables
  ActionOptions actions;  // of a learned policy; rules name sizes
  // A new policy for a new job. Thread-safe; a loaded file is shared, read-only, between the
  // policies made.
  std::function<std::unique_ptr<Policy>()> make;
  Objective objective = {};   // of a learned policy: what it was learned for
  std::string checksum = {};  // SHA-256 of its file; empty: a rule
  bool guarded = false, steps = false;
};

}  // namespace dynamix
