#include "dynamix/policies/make_policy.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/policies/rules.h"

namespace dynamix {
namespace {

template <typename Number>
bool Parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

// Takes `text` up to the next colon off its front.
std::string_view TakePart(std::string_view& text) {
  const std::string_view part = text.substr(0, text.find(':'));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return part;
}

// Sets the options named in `constants`, "NAME=VALUE:NAME=VALUE".
template <typename Options>
Options ParseOptions(std::string_view policy, std::string_view constants) {
  Options options;
  while (!constants.empty()) {
    const std::string_view part = TakePart(constants);
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    double value = 0;
    const bool number = equals < part.size() && Parse(part.substr(equals + 1), value);
    bool known = false;
    std::string names;
    options.Visit([&](std::string_view name, double& field, double low, double high) {
      names += (names.empty() ? "" : ", ") + std::string(name);
      if (name != key) return;
      known = true;
      if (number)
        RequireInRange("policy " + std::string(policy) + ": " + std::string(key), value, low, high);
      field = value;
    });
    if (!known || !number)
      throw InputError::OutOfRange("policy", policy,
                                   "constants NAME=VALUE with a name of " + names);
  }
  return options;
}

template <typename Rule, typename Options>
std::unique_ptr<Policy> MakeRule(std::string_view policy, std::string_view constants) {
  return std::make_unique<Rule>(ParseOptions<Options>(policy, constants));
}

std::unique_ptr<Policy> MakeStatic(std::string_view policy, std::string_view size) {
  if (policy == "static") return std::make_unique<StaticPolicy>();
  int batch = 0;
  if (!Parse(size, batch) || batch < 1)
    throw InputError::OutOfRange("policy", policy, "static:N with a batch size N of 1 or more");
  return std::make_unique<StaticPolicy>(batch);
}

struct NamedRule {
  std::string_view name;
  // From the whole name and what follows its colon.
  std::unique_ptr<Policy> (*make)(std::string_view policy, std::string_view constants);
  std::string_view description;
};

constexpr std::array<NamedRule, 6> kRules = {{
    {"static", MakeStatic, "holds the start batches; static:N gives every worker N samples"},
    {"balanced", MakeRule<BalancedPolicy, BalancedOptions>,
     "equal compute times at a constant global batch (OmniLearn, LB-BSP)"},
    {"base", MakeRule<BasePolicy, BalancedOptions>,
     "equal compute times, straight at the job's base batch"},
    {"noise_scale", MakeRule<NoiseScalePolicy, NoiseScaleOptions>,
     "the global batch follows the gradient noise scale (McCandlish et al., KungFu)"},
    {"goodput", MakeRule<GoodputPolicy, GoodputOptions>,
     "the most throughput x efficiency (Pollux, AdaptDL)"},
    {"composite", MakeRule<CompositePolicy, CompositeOptions>,
     "the least time to go under the learning-rate rule and schedule"},
}};

const NamedRule* FindRule(std::string_view policy) {
  const std::string_view name = TakePart(policy);
  for (const NamedRule& rule : kRules)
    if (rule.name == name) return &rule;
  return nullptr;
}

}  // namespace

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const NamedRule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

std::string RuleDescription(std::string_view name) {
  const NamedRule* rule = FindRule(name);
  DYNAMIX_CHECK(rule != nullptr, "a rule");
  return std::string(rule->description);
}

bool IsRule(std::string_view name) { return FindRule(name) != nullptr; }

std::unique_ptr<Policy> MakePolicy(std::string_view name) {
  const NamedRule* rule = FindRule(name);
  if (rule != nullptr) {
    std::string_view constants = name;
    TakePart(constants);
    return rule->make(name, constants);
  }
  std::string known = "static:N";
  for (const NamedRule& each : kRules) known += ", " + std::string(each.name);
  throw InputError::OutOfRange("policy", name, known + ", or a policy file");
}

PolicySpec RuleSpec(const std::string& name) {
  MakePolicy(name);  // refuses a malformed one now rather than in a thread
  return {name, {}, [name] { return MakePolicy(name); }};
}

}  // namespace dynamix
