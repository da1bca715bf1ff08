#include "dynamix/host/file_descriptor.h"

#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace dynamix {

std::vector<int> OpenDescriptors() {
  std::vector<int> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", failed)) {
    const std::string name = entry.path().filename();
    int file = -1;
    std::from_chars(name.data(), name.data() + name.size(), file);
    found.push_back(file);
  }
  return found;
}

}  // namespace dynamix
