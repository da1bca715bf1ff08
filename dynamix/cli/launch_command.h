// dynamix launch: N ranks of any program on this machine, with torchrun's environment.
#pragma once

namespace CLI {
class App;
}

namespace dynamix {

void AddLaunchCommand(CLI::App& app);

}  // namespace dynamix
