// Where a server listens: HOST:PORT, [V6]:PORT or unix:PATH. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dynamix {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;      // 0: a free one
};

inline constexpr std::string_view kHostPortForm = "HOST:PORT with a port of 0 to 65535";

// Nothing when `address` is not of that form.
std::optional<HostPort> ParseHostPort(std::string_view address);
// Throws InputError instead; `field` is what the user knows it by.
void RequireHostPort(std::string_view field, std::string_view address);

// True when only this machine can reach `address`.
bool IsLoopback(std::string_view address);

}  // namespace dynamix
