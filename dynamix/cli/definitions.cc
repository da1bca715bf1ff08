#include "dynamix/cli/definitions.h"

#include <CLI/CLI.hpp>
#include <sstream>

namespace dynamix {
namespace {

using nlohmann::json;

// Of "TEXT:{sim,virtual,live}", as the library describes a value out of a set.
json ChoicesOf(const std::string& type) {
  json choices = json::array();
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::istringstream list(type.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

json FlagJson(const CLI::Option& option) {
  json names = json::array();
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  if (names.empty()) names.push_back(option.get_name(/*positional=*/true));
  const bool takes_value = option.get_items_expected_max() > 0;
  const std::string type = takes_value ? option.get_type_name() : "";
  return {{"names", names},
          {"description", option.get_description()},
          {"value", type.substr(0, type.find_first_of(":{ "))},
          {"default", takes_value ? option.get_default_str() : ""},
          {"choices", ChoicesOf(type)}};
}

}  // namespace

json DefinitionsOf(const CLI::App& app) {
  json flags = json::array(), commands = json::array();
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) flags.push_back(FlagJson(*option));  // empty: hidden
  for (const CLI::App* command : app.get_subcommands({}))
    commands.push_back(DefinitionsOf(*command));
  return {{"name", app.get_name()},
          {"description", app.get_description()},
          {"footer", app.get_footer()},
          {"flags", flags},
          {"commands", commands}};
}

}  // namespace dynamix
