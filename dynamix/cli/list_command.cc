// dynamix list: the names that other commands take.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/job/scenario.h"
#include "dynamix/job/workload.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {
namespace {

struct Named {
  std::string name, description;
};

std::vector<Named> Policies() {
  std::vector<Named> all;
  for (const std::string& rule : RuleNames()) all.push_back({rule, RuleDescription(rule)});
  for (const std::string& name : ShippedNames("policies", ".safetensors"))
    all.push_back({name, "learned; dynamix policy show " + name + " describes it"});
  return all;
}

std::vector<Named> Workloads() {
  std::vector<Named> all;
  for (const std::string& name : ShippedNames("workloads", ".toml"))
    all.push_back({name, LoadWorkload(FindWorkloadFile("workload", name)).description});
  return all;
}

std::vector<Named> Scenarios() {
  std::vector<Named> all;
  for (const std::string& name : ShippedNames("scenarios", ".toml"))
    all.push_back(
        {name, LoadScenario(FindData("scenario", name, "scenarios", ".toml")).description});
  return all;
}

void Print(const std::vector<Named>& all, bool json) {
  if (json) {
    nlohmann::json names = nlohmann::json::array();
    for (const Named& one : all)
      names.push_back({{"name", one.name}, {"description", one.description}});
    std::printf("%s\n", names.dump().c_str());
    return;
  }
  std::size_t width = 0;
  for (const Named& one : all) width = std::max(width, one.name.size());
  for (const Named& one : all)
    std::printf("%-*s  %s\n", static_cast<int>(width), one.name.c_str(), one.description.c_str());
}

}  // namespace

void AddListCommand(CLI::App& app) {
  CLI::App* list = app.add_subcommand("list", "List the names that other commands take");
  list->require_subcommand(1);
  const auto json = std::make_shared<bool>(false);
  const auto add = [&](const char* kind, const char* text, std::vector<Named> (*all)()) {
    CLI::App* command = list->add_subcommand(kind, text);
    command->add_flag("--json", *json, "a JSON array of names and descriptions");
    command->callback([json, all] { Print(all(), *json); });
  };
  add("policies", "Rules and shipped policies: --policy, --policies", Policies);
  add("workloads", "What is trained: --workload", Workloads);
  add("scenarios", "Clusters: --cluster", Scenarios);
  list->footer("Example:\n  dynamix list workloads");
}

}  // namespace dynamix
