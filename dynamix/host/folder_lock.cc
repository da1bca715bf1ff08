#include "dynamix/host/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace dynamix {

bool FolderLock::Take(const std::filesystem::path& folder) {
  std::error_code refused;  // whoever writes into it says so
  std::filesystem::create_directories(folder, refused);
  folder_ = FileDescriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return !folder_.valid() || flock(folder_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

}  // namespace dynamix
