// A folder that one process at a time works in. The lock is of the folder itself, so no file is left,
// and ends with the process, however that ends.
#pragma once

#include <filesystem>

#include "dynamix/host/file_descriptor.h"

namespace dynamix {

class FolderLock {
 public:
  // False when another process has it. Makes the folder when it is not there. Where the file system
  // knows no such locks, or refuses the folder, it is taken for free.
  bool Take(const std::filesystem::path& folder);

 private:
  FileDescriptor folder_;
};

}  // namespace dynamix
