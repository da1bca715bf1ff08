// The rules by name. Each is an opponent the learned policy must beat, so each is built as its
// authors would:
//
//   static          holds the start batches
//   static:N        every worker N samples
//   balanced        equal compute times at a constant global batch      (OmniLearn, LB-BSP)
//   noise_scale     the global batch follows the gradient noise scale   (McCandlish et al., KungFu)
//   goodput         the global batch maximises throughput x efficiency  (Pollux / AdaptDL)
// The last three share the global batch in proportion to measured speed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dynamix/core/policy_spec.h"

namespace dynamix {

// Throws InputError naming `name` and the known ones when there is no such rule.
std::unique_ptr<Policy> MakePolicy(std::string_view name);

// True when `name` is one of the rules above (well-formed or not), false when it must be a file.
bool IsRule(std::string_view name);

// The same as something that can be made for every job. Throws as MakePolicy.
PolicySpec RuleSpec(const std::string& name);

std::vector<std::string> RuleNames();

}  // namespace dynamix
