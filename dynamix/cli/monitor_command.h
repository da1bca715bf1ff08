// dynamix monitor: live network, CPU and memory of a job, as a table or as JSON lines.
// Like every command: adds its flags to the application, runs when the user names it, and throws
// InputError for a job that is not there.
#pragma once

namespace CLI {
class App;
}

namespace dynamix {

void AddMonitorCommand(CLI::App& app);

}  // namespace dynamix
