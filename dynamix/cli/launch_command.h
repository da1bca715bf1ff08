// dynamix launch: N ranks of any program on this machine, with torchrun's environment.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dynamix {

// `after`: the words after "--".
void AddLaunchCommand(CLI::App& app, const std::vector<std::string>& after);

}  // namespace dynamix
