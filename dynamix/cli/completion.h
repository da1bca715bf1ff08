// Completion scripts of shells, and the manual page, made from the definitions of the commands
// (definitions.h). Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dynamix {

std::string BashCompletion(const nlohmann::json& definitions);
std::string ZshCompletion(const nlohmann::json& definitions);
std::string FishCompletion(const nlohmann::json& definitions);

// Of section 1, as troff(7) with the man macros.
std::string ManualPage(const nlohmann::json& definitions, const std::string& version);

}  // namespace dynamix
