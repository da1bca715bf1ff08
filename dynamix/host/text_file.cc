#include "dynamix/host/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace dynamix {

std::optional<std::string> ReadTextFile(const std::string& path) {
  constexpr std::size_t kLimit = 1 << 20;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  char chunk[4096];
  ssize_t got = 0;
  while ((got = read(file, chunk, sizeof chunk)) > 0 && text.size() < kLimit)
    text.append(chunk, static_cast<std::size_t>(got));
  close(file);
  if (got != 0) return std::nullopt;
  return text;
}

Status WriteTextFile(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return SystemError(path, errno);
  const ssize_t wrote = write(file, text.data(), text.size());
  const int error_number = errno;
  close(file);
  if (wrote != static_cast<ssize_t>(text.size())) return SystemError(path, error_number);
  return Nothing{};
}

Error SystemError(std::string what, int error_number) {
  return Error{std::move(what) + ": " + std::generic_category().message(error_number)};
}

}  // namespace dynamix
