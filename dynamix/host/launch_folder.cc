#include "dynamix/host/launch_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace dynamix {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderPrefix = "dynamix-launch-";

FileDescriptor Open(const std::string& path) {
  return FileDescriptor(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

LaunchFolder::LaunchFolder() {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (error) return;
  // Whoever cleans up may come between making and locking it: then another one is made.
  do {
    path_ = (temporary / (std::string(kFolderPrefix) + "XXXXXX")).string();
    if (mkdtemp(path_.data()) == nullptr) {
      path_.clear();
      return;
    }
    lock_ = Open(path_);
    (void)flock(lock_.get(), LOCK_EX);
  } while (!fs::exists(path_, error));
}

LaunchFolder::~LaunchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::vector<std::string> RemoveLeftLaunchFolders() {
  std::vector<std::string> removed;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::temp_directory_path(error), error)) {
    const std::string path = entry.path().string();
    if (!entry.path().filename().string().starts_with(kFolderPrefix)) continue;
    const FileDescriptor folder = Open(path);
    if (!folder.valid() || flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code refused;
    fs::remove_all(entry.path(), refused);
    if (!refused) removed.push_back(path);
  }
  return removed;
}

}  // namespace dynamix
