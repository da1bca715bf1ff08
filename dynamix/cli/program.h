// What every program of the command line does around its commands: logs to stderr, parses, and
// turns exceptions into one line and an exit code (docs/errors.md).
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace dynamix {

// The work is done, but its record misses something (RecordLost). EX_IOERR of sysexits.h.
inline constexpr int kExitRecordLost = 74;

// Words after "--" of `launch` are another program's. They are not parsed (CLI11 makes two words of
// "[1,2]") but given to the commands as they are.
using Words = std::vector<std::string>;
int RunProgram(int argc, char** argv, void (*add_commands)(CLI::App&, const Words& after));

}  // namespace dynamix
