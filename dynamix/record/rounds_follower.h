// RoundsFollower: reads a rounds.jsonl that is being written, what was added since the last time.
//
// Whole lines only: the last one may be in the making. What cannot be read is left out. A file that
// got shorter is of a run that started anew, and is read from its beginning. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

namespace dynamix {

class RoundsFollower {
 public:
  // `path` need not exist yet.
  explicit RoundsFollower(std::filesystem::path path) : path_(std::move(path)) {}

  // Calls `visit` with each new line, in order.
  void ReadNew(const std::function<void(const nlohmann::json& line)>& visit);

  // How often the file began: 0 before its first line, 2 after a run that started anew.
  int starts() const { return starts_; }

 private:
  std::filesystem::path path_;
  std::uint64_t read_ = 0;  // bytes, whole lines
  int starts_ = 0;
};

}  // namespace dynamix
