#include "dynamix/cli/find_policy.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

#include "dynamix/cli/data_folder.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/ppo/learned_policy.h"
#include "dynamix/ppo/policy_file.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

std::string FindPolicyFile(const std::string& name) {
  std::vector<std::string> rules = RuleNames();
  rules.push_back("static:N");
  return FindData("policy", name, "policies", ".safetensors", std::move(rules));
}

PolicySpec FileSpec(const std::string& name, const std::string& path) {
  Result<PolicyModel> loaded = LoadPolicy(path);
  if (!loaded) throw InputError(path + ": " + loaded.error());
  const Result<std::string> bytes = ReadBytes(path);
  if (!bytes) throw InputError(path + ": " + bytes.error());
  // Shared because every job's policy reads the same weights and none of them owns the file.
  const auto model = std::make_shared<const PolicyModel>(std::move(loaded).value());
  return {name, model->actions,
          [model] { return std::make_unique<LearnedPolicy>(*model, Choice::kGreedy); },
          model->objective, ChecksumOf(bytes.value())};
}

PolicySpec FindWithPrefixes(const std::string& name) {
  const std::string plain = WithoutPrefixes(name);
  const std::string prefixes = name.substr(0, name.size() - plain.size());
  PolicySpec spec = FindPolicy(plain);
  spec.name = name;
  spec.guarded = prefixes.starts_with(kGuardedPrefix);
  spec.steps = prefixes.ends_with(kStepsPrefix);
  return spec;
}

}  // namespace

PolicySpec FindPolicy(const std::string& name) {
  if (WithoutPrefixes(name) != name)
    throw InputError::OutOfRange(
        "policy", name,
        "a policy without guarded: or steps:, which are of `dynamix evaluate`; elsewhere guard and "
        "clock are settings: --no-guard and --clock steps (in Python guard=False, "
        "clock=\"steps\")");
  if (IsRule(name)) return RuleSpec(name);
  return FileSpec(name, FindPolicyFile(name));
}

PolicySpec FindNamedPolicy(const std::string& name) {
  if (IsRule(name)) return RuleSpec(name);
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  if (!plain)
    throw InputError::OutOfRange("policy", name, "the name of a rule or of a shipped policy");
  return FileSpec(name, DataFolder() + "/policies/" + name + ".safetensors");
}

std::vector<PolicySpec> FindPolicies(const std::string& names) {
  std::vector<PolicySpec> specs;
  std::stringstream stream(names);
  for (std::string name; std::getline(stream, name, ',');)
    if (!name.empty()) specs.push_back(FindWithPrefixes(name));
  if (specs.empty()) throw InputError::OutOfRange("--policies", names, "NAME[,NAME...]");
  return specs;
}

std::optional<PolicyModel> FindModel(const std::string& name) {
  const std::string policy = WithoutPrefixes(name);
  if (IsRule(policy)) return std::nullopt;
  try {
    Result<PolicyModel> loaded = LoadPolicy(FindPolicyFile(policy));
    if (loaded) return std::move(loaded).value();
  } catch (const InputError&) {  // the report still shows everything else
  }
  return std::nullopt;
}

}  // namespace dynamix
