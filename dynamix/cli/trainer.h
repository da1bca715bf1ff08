// libtorch takes a second to load, so only one program links it: dynamix-train (helper_program.h). It
// is the same command line; dynamix hands over what trains by becoming that program.
#pragma once

#include <nlohmann/json.hpp>

#include "dynamix/cli/virtual_suite.h"

namespace CLI {
class App;
}

namespace dynamix {

// The words of the command line that started this program, its name first.
std::vector<std::string> OwnCommandLine();

// Replaces this process by dynamix-train with the same words. Throws std::runtime_error when it is
// not there.
[[noreturn]] void BecomeTrainer();

// The commands that train, by name and description; their flags are dynamix-train's.
void AddTrainerCommands(CLI::App& app);

// DefinitionsOf the program, with the trainer's own for what is handed over (when it is there).
nlohmann::json DefinitionsWithTrainer(const CLI::App& app);

// A VirtualSuite that hands over.
VirtualMaker BecomeTrainerForSuite(const std::vector<JobSpec>& jobs, const std::string& data);

}  // namespace dynamix
