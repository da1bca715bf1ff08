#include "dynamix/host/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "dynamix/host/failpoint.h"
#include "dynamix/host/file_descriptor.h"

namespace dynamix {
namespace {

Error FileError(const std::string& what, const std::string& path) {
  return Error{what + " '" + path + "': " + std::strerror(errno)};
}

Status WriteAndSync(const std::string& path, std::string_view bytes) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return FileError("cannot write", path);
  DYNAMIX_FAILPOINT("the new file is empty");
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileError("cannot write", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  DYNAMIX_FAILPOINT("the new file is not on the disk");
  if (::fsync(file.get()) != 0 || !file.Close()) return FileError("cannot write", path);
  return Nothing{};
}

// Some file systems refuse to sync a folder; the rename is then as durable as they make it.
void SyncFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const FileDescriptor file(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) (void)::fsync(file.get());
}

// Gives what is at `path` a second name, so that `path` itself never goes missing. File systems
// without second names get a copy.
Status KeepPrevious(const std::string& path, const KeepFile& keep) {
  if (!keep || ::access(path.c_str(), F_OK) != 0 || !keep(path)) return Nothing{};
  const std::string previous = PreviousGeneration(path), writing = previous + ".writing";
  (void)::unlink(writing.c_str());
  if (::link(path.c_str(), writing.c_str()) != 0) {
    const Result<std::string> current = ReadBytes(path);
    if (!current) return Error{current.error()};
    if (Status copied = WriteAndSync(writing, current.value()); !copied) return copied;
  }
  DYNAMIX_FAILPOINT("the old file has a second name");
  if (::rename(writing.c_str(), previous.c_str()) != 0)
    return FileError("cannot keep the previous generation", previous);
  // A rename between two names of one file, which a process killed here left behind, does nothing.
  (void)::unlink(writing.c_str());
  return Nothing{};
}

}  // namespace

std::string PreviousGeneration(const std::string& path) { return path + ".previous"; }

Result<std::string> ReadBytes(const std::string& path, std::size_t most) {
  // Opening a pipe that nobody writes waits for ever otherwise.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return FileError("cannot read", path);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return FileError("cannot read", path);
  if (!S_ISREG(about.st_mode)) return Error{"cannot read '" + path + "': not a regular file"};
  if (static_cast<std::uint64_t>(about.st_size) > most)
    return Error{"cannot read '" + path + "': larger than " + std::to_string(most) + " bytes"};
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("cannot read", path);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Status WriteBytes(const std::string& path, std::string_view bytes, const KeepFile& keep) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode)))
    return Error{"cannot write '" + path + "': a device, not a file"};
  const std::string writing = path + ".writing." + std::to_string(::getpid());
  Status status = WriteAndSync(writing, bytes);
  DYNAMIX_FAILPOINT("the new file is whole");
  if (status) status = KeepPrevious(path, keep);
  DYNAMIX_FAILPOINT("the old file is the previous one");
  if (status && ::rename(writing.c_str(), path.c_str()) != 0)
    status = FileError("cannot replace", path);
  if (!status) {
    (void)::unlink(writing.c_str());
    return status;
  }
  DYNAMIX_FAILPOINT("the new file is in place");
  SyncFolderOf(path);
  return Nothing{};
}

}  // namespace dynamix
