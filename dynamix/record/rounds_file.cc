#include "dynamix/record/rounds_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Error FileError(const fs::path& path) {
  return Error{"cannot write " + path.string() + ": " + std::strerror(errno)};
}

// The round a line is of; -1 when it is not a line of a round.
std::int64_t RoundOf(const std::string& text) {
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || !line.contains("round") || !line["round"].is_number_integer()) return -1;
  return line["round"].get<std::int64_t>();
}

// Bytes up to and with the last newline; nothing when the file cannot be read.
std::optional<std::int64_t> WholeLines(int file, std::int64_t size) {
  std::array<char, 4096> block;
  for (std::int64_t end = size; end > 0;) {
    const auto count = std::min<std::int64_t>(end, block.size());
    const std::int64_t begin = end - count;
    if (pread(file, block.data(), static_cast<std::size_t>(count), begin) != count)
      return std::nullopt;
    for (std::int64_t i = count; i > 0; --i)
      if (block[static_cast<std::size_t>(i - 1)] == '\n') return begin + i;
    end = begin;
  }
  return 0;
}

}  // namespace

Status RoundsWriter::Open() {
  std::error_code error;
  if (path_.has_parent_path()) fs::create_directories(path_.parent_path(), error);
  if (error) return Error{"cannot make " + path_.parent_path().string() + ": " + error.message()};
  file_ = FileDescriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  struct stat about {};
  const bool known = file_.valid() && fstat(file_.get(), &about) == 0;
  const std::optional<std::int64_t> whole =
      known ? WholeLines(file_.get(), about.st_size) : std::nullopt;
  if (!whole || (*whole < about.st_size && ftruncate(file_.get(), *whole) != 0)) {
    Error failure = FileError(path_);
    file_ = {};  // nobody may cut a file whose length is not known
    return failure;
  }
  size_ = *whole;
  return Nothing{};
}

Result<std::int64_t> RoundsWriter::KeepBefore(std::int64_t end) {
  if (Status opened = Open(); !opened) return Error{opened.error()};
  std::int64_t lines = 0, bytes = 0;
  std::ifstream file(path_, std::ios::binary);
  if (!file) return Error{"cannot read " + path_.string()};
  for (std::string line; lines < end && std::getline(file, line) && !file.eof(); ++lines) {
    if (const std::int64_t round = RoundOf(line); round < 0 || round >= end) break;
    bytes += static_cast<std::int64_t>(line.size()) + 1;
  }
  if (file.bad()) return Error{"cannot read " + path_.string()};
  if (ftruncate(file_.get(), bytes) != 0) return FileError(path_);
  size_ = bytes;
  return lines;
}

Status RoundsWriter::Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileError(path_);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Nothing{};
}

Status RoundsWriter::Add(const json& line) {
  // A name in it may be anything: what is not UTF-8 is replaced, not refused.
  const std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  Status status = file_.valid() ? Status(Nothing{}) : Open();
  if (status) status = Write(text);
  if (status) {
    size_ += static_cast<std::int64_t>(text.size());
    return status;
  }
  ++lost_;
  // Takes back a part that was written. Should that fail too, Open cuts it off.
  if (file_.valid()) (void)!ftruncate(file_.get(), size_);
  file_ = {};
  return status;
}

Status RoundsWriter::Sync() {
  if (file_.valid() && fsync(file_.get()) != 0 && errno != EINVAL) return FileError(path_);
  return Nothing{};
}

void ReadRounds(const fs::path& path, const std::function<void(const json& line)>& visit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError("cannot read " + path.string());
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (file.eof()) break;  // no newline
    try {
      visit(json::parse(line));
    } catch (const json::exception& error) {
      throw InputError(path.string() + ":" + std::to_string(number) +
                       " is damaged: " + error.what());
    }
  }
}

}  // namespace dynamix
