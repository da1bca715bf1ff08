// An HTML document of this project: its head, style and content-security policy. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dynamix {

// One self-contained file. The policy lets the browser run this very script and nothing else, and
// refuses anything from outside. `data` is there for the script as the element "data".
std::string Document(const std::string& title, const std::string& body,
                     const nlohmann::json& data = nullptr, const std::string& script = {});

}  // namespace dynamix
