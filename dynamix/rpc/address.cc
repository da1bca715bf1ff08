#include "dynamix/rpc/address.h"

#include <algorithm>
#include <charconv>

#include "dynamix/core/input_error.h"

namespace dynamix {

std::optional<HostPort> ParseHostPort(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = address.substr(0, colon);
  const std::string_view port = address.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  HostPort parsed{std::string(host), -1};
  const char* const end = port.data() + port.size();
  const auto [read, problem] = std::from_chars(port.data(), end, parsed.port);
  if (host.empty() || problem != std::errc{} || read != end) return std::nullopt;
  if (parsed.port < 0 || parsed.port > 65535) return std::nullopt;
  return parsed;
}

void RequireHostPort(std::string_view field, std::string_view address) {
  if (!ParseHostPort(address)) throw InputError::OutOfRange(field, address, kHostPortForm);
}

bool IsLoopback(std::string_view address) {
  if (address.starts_with("unix:")) return true;
  const std::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Four numbers: "127.evil.example" is a name anybody can own.
  return host.starts_with("127.") && std::count(host.begin(), host.end(), '.') == 3 &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

}  // namespace dynamix
