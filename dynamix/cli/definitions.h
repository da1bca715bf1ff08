// The commands and flags of the program as data: completion scripts and the manual page are made
// from it, so that they cannot say anything else than --help does.
//
//   {"name": "launch", "description": "...", "footer": "...",
//    "flags": [{"names": ["-n", "--ranks"], "description": "...", "value": "INT",
//               "default": "1", "choices": ["a", "b"]}],
//    "commands": [...]}
//
// A positional argument has one name without a dash. A flag without a value has "value": "".
#pragma once

#include <nlohmann/json.hpp>

namespace CLI {
class App;
}

namespace dynamix {

nlohmann::json DefinitionsOf(const CLI::App& app);

}  // namespace dynamix
