// rounds.jsonl: one JSON object per round and line, in order. Only this file writes or reads it.
//
// The file holds whole lines. A line that the disk refuses is taken back, counted and lost; the
// next line opens the file anew, so a disk that is full for a while costs the rounds of that while.
// What a crash left of a line is cut off when the file is opened again. Not thread-safe; one
// process writes a file, others may read it meanwhile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "dynamix/core/result.h"
#include "dynamix/host/file_descriptor.h"

namespace dynamix {

class RoundsWriter {
 public:
  // Appends to what `path` holds; opens it, and makes its folder, with the first line.
  explicit RoundsWriter(std::filesystem::path path) : path_(std::move(path)) {}

  // Removes the lines from round `end` on, for a run that goes on from there (0: starts anew). How
  // many lines are left.
  Result<std::int64_t> KeepBefore(std::int64_t end);
  // An Error with the system's reason when the line is lost.
  Status Add(const nlohmann::json& line);
  // Waits until the disk has every line that was added.
  Status Sync();

  std::int64_t lost() const { return lost_; }  // lines, since construction

 private:
  Status Open();
  Status Write(std::string_view text);

  std::filesystem::path path_;
  FileDescriptor file_;
  std::int64_t size_ = 0;  // of the file's whole lines
  std::int64_t lost_ = 0;
};

// Calls `visit` with each round's line, in order. Leaves out a last line without its end: its
// writer was killed, or writes it at this moment. Throws InputError naming the file, and the line
// when one is damaged or `visit` misses something in it (a nlohmann::json::exception).
void ReadRounds(const std::filesystem::path& path,
                const std::function<void(const nlohmann::json& line)>& visit);

}  // namespace dynamix
