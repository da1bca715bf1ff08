#include "dynamix/policies/make_policy.h"

#include <charconv>

#include "dynamix/core/input_error.h"
#include "dynamix/policies/rules.h"

namespace dynamix {

std::vector<std::string> RuleNames() { return {"static", "balanced", "noise_scale", "goodput"}; }

bool IsRule(std::string_view name) {
  if (name.starts_with("static:")) return true;
  for (const std::string& rule : RuleNames())
    if (name == rule) return true;
  return false;
}

std::unique_ptr<Policy> MakePolicy(std::string_view name) {
  if (name == "static") return std::make_unique<StaticPolicy>();
  if (name == "balanced") return std::make_unique<BalancedPolicy>();
  if (name == "noise_scale") return std::make_unique<NoiseScalePolicy>();
  if (name == "goodput") return std::make_unique<GoodputPolicy>();
  if (name.starts_with("static:")) {
    const std::string_view digits = name.substr(7);
    int batch = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), batch);
    if (error == std::errc{} && end == digits.data() + digits.size() && batch > 0)
      return std::make_unique<StaticPolicy>(batch);
    throw InputError::OutOfRange("policy", name, "static:N with a batch size N of 1 or more");
  }
  throw InputError::OutOfRange(
      "policy", name, "static, static:N, balanced, noise_scale, goodput, or a policy file");
}

PolicySpec RuleSpec(const std::string& name) {
  MakePolicy(name);  // refuses a malformed one now rather than in a thread
  return {name, {}, [name] { return MakePolicy(name); }};
}

}  // namespace dynamix
