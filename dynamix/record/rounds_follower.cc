#include "dynamix/record/rounds_follower.h"

#include <fstream>

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostAtOnce = std::size_t{16} << 20;  // bytes

}  // namespace

void RoundsFollower::ReadNew(const std::function<void(const json& line)>& visit) {
  std::error_code gone;
  const std::uint64_t size = fs::file_size(path_, gone);
  if (gone || size == read_) return;
  if (read_ == 0 || size < read_) {
    read_ = 0;
    ++starts_;
  }
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(read_));
  std::string text(std::min<std::uint64_t>(kMostAtOnce, size - read_), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const json line = json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr,
                                  /*allow_exceptions=*/false);
    if (line.is_object()) visit(line);
  }
  if (read_ == 0 && begin == 0) --starts_;  // not one whole line yet
  read_ += begin;
}

}  // namespace dynamix
