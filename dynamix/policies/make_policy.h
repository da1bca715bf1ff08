// The rules by name. Each is an opponent the learned policy must beat, so each is built as its
// authors would:
//
//   static          holds the start batches
//   static:N        every worker N samples
//   balanced        equal compute times at a constant global batch      (OmniLearn, LB-BSP)
//   base            the same, straight at the job's base batch
//   noise_scale     the global batch follows the gradient noise scale   (McCandlish et al., KungFu)
//   goodput         the global batch maximises throughput x efficiency  (Pollux / AdaptDL)
//   composite       the global batch gets the job furthest per second under its learning-rate rule
//                   and schedule
// All but static share the global batch so that compute times are equal. A rule's constants follow
// its name, each after a colon: `goodput:step=4:gain=0.05` (rules.h lists them).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dynamix/core/policy_spec.h"

namespace dynamix {

// Throws InputError naming `name` and what is known when there is no such rule or constant, or a
// constant is out of its range.
std::unique_ptr<Policy> MakePolicy(std::string_view name);

// True when `name` is one of the rules above (well-formed or not), false when it must be a file.
bool IsRule(std::string_view name);

// The same as something that can be made for every job. Throws as MakePolicy.
PolicySpec RuleSpec(const std::string& name);

std::vector<std::string> RuleNames();
// One line. `name` is one of RuleNames().
std::string RuleDescription(std::string_view name);

}  // namespace dynamix
