// dynamix arbitrator: serves advice to live jobs.
#pragma once

namespace CLI {
class App;
}

namespace dynamix {

void AddArbitratorCommand(CLI::App& app);

}  // namespace dynamix
