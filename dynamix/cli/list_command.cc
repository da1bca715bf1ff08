// dynamix list: the names that other commands take.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/data_folder.h"
#include "dynamix/cli/terminal.h"
#include "dynamix/job/catalogue.h"
#include "dynamix/job/scenario.h"
#include "dynamix/job/workload.h"
#include "dynamix/policies/make_policy.h"

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

template <typename Known>
std::vector<Named> NamedOf(std::span<const Known> known) {
  std::vector<Named> all;
  for (const Known& one : known)
    all.push_back({std::string(one.name), std::string(one.description)});
  return all;
}

std::vector<Named> Models() { return NamedOf(KnownModels()); }
std::vector<Named> Datasets() { return NamedOf(KnownDatasets()); }

void Print(std::vector<Named> all, bool json) {
  std::sort(all.begin(), all.end(), [](const Named& a, const Named& b) { return a.name < b.name; });
  if (json) {
    nlohmann::json names = nlohmann::json::array();
    for (const Named& one : all)
      names.push_back({{"name", one.name}, {"description", one.description}});
    std::printf("%s\n", names.dump().c_str());
    return;
  }
  std::size_t width = 0;
  for (const Named& one : all) width = std::max(width, one.name.size());
  const std::size_t columns = TerminalWidth(STDOUT_FILENO);
  for (const Named& one : all) {
    std::string text = one.description;
    if (columns > width + 22) text = Wrapped(text, columns - width - 2);
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at)
      text.insert(at + 1, width + 2, ' ');
    std::printf("%-*s  %s\n", static_cast<int>(width), one.name.c_str(), text.c_str());
  }
}

}  // namespace

void AddListCommand(CLI::App& app) {
  CLI::App* list = app.add_subcommand("list", "List the names that other commands take");
  list->require_subcommand(1);
  const auto json = std::make_shared<bool>(false);
  const auto add = [&](const char* kind, const char* text, std::vector<Named> (*all)()) {
    CLI::App* command = list->add_subcommand(kind, text);
    command->footer(std::string("Example:\n  dynamix list ") + kind + " --json");
    command->add_flag("--json", *json, "a JSON array of names and descriptions");
    command->callback([json, all] { Print(all(), *json); });
  };
  add("policies", "Rules and shipped policies: --policy, --policies", Policies);
  add("workloads", "What is trained: --workload", Workloads);
  add("scenarios", "Clusters: --cluster", Scenarios);
  add("models", "Networks that dynamix trains itself: --model", Models);
  add("datasets", "Data they are trained on, in a workload's [model]", Datasets);
  list->footer("Example:\n  dynamix list workloads");
}

}  // namespace dynamix
