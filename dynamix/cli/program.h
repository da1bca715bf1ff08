// What every program of the command line does around its commands: logs to stderr, parses, and
// turns exceptions into one line and an exit code (docs/errors.md).
#pragma once

namespace CLI {
class App;
}

namespace dynamix {

// The work is done, but its record misses something (RecordLost). EX_IOERR of sysexits.h.
inline constexpr int kExitRecordLost = 74;

int RunProgram(int argc, char** argv, void (*add_commands)(CLI::App&));

}  // namespace dynamix
