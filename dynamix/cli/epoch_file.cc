#include "dynamix/cli/epoch_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "dynamix/host/atomic_file.h"

namespace dynamix {

std::uint64_t NextEpoch(const std::string& folder, std::chrono::system_clock::time_point now) {
  auto epoch = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
  if (folder.empty()) return epoch;
  std::filesystem::create_directories(folder);
  const std::filesystem::path path = std::filesystem::path(folder) / "epoch";
  std::uint64_t last = 0;
  std::ifstream(path) >> last;
  epoch = std::max(epoch, last + 1);
  if (const Status saved = WriteBytes(path.string(), std::to_string(epoch)); !saved)
    throw std::runtime_error(saved.error());
  return epoch;
}

}  // namespace dynamix
