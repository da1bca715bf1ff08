// dynamix compare: one job under several policies, a table, a sentence and a report.
#pragma once

namespace CLI {
class App;
}

namespace dynamix {

void AddCompareCommand(CLI::App& app);

}  // namespace dynamix
