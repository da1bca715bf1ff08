// The commands by which the program describes itself.
#pragma once

#include <nlohmann/json.hpp>

namespace CLI {
class App;
}

namespace dynamix {

// Definitions of all commands of a program (definitions.h).
using DefinitionsFunction = nlohmann::json (*)(const CLI::App& app);

void AddManualCommand(CLI::App& app, DefinitionsFunction definitions);
void AddCompletionCommand(CLI::App& app, DefinitionsFunction definitions);

}  // namespace dynamix
