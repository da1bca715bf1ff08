#include "dynamix/rpc/security.h"

#include <algorithm>

namespace dynamix {

bool IsLoopback(std::string_view address) {
  if (address.starts_with("unix:")) return true;
  const std::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // Four numbers: "127.evil.example" is a name anybody can own.
  return host.starts_with("127.") && std::count(host.begin(), host.end(), '.') == 3 &&
         host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool MaySpeakAs(const std::vector<std::string>& names, const WorkerName& worker) {
  const std::string job = "dynamix://job/" + worker.job + "/rank/";
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == job + "*" || name == job + std::to_string(worker.rank);
  });
}

bool MayAdminister(const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), "dynamix://admin") != names.end();
}

bool SameToken(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    difference |= static_cast<unsigned char>(wanted[i]) ^
                  static_cast<unsigned char>(given.empty() ? 0 : given[i % given.size()]);
  return difference == 0;
}

}  // namespace dynamix
