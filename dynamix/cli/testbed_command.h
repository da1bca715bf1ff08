// dynamix testbed clean: removes what testbeds and launches left that were killed.
#pragma once

namespace CLI {
class App;
}

namespace dynamix {

void AddTestbedCommand(CLI::App& app);

}  // namespace dynamix
