// A launcher's own folder in the system's folder for temporary files, which nobody else can enter.
// Gone with the object; what a launcher leaves that was killed, RemoveLeftLaunchFolders removes.
//
// A launcher holds a lock on its folder while it lives, so that those of the living are told from
// those of the dead, also between containers that share the files but not the processes.
#pragma once

#include <string>
#include <vector>

#include "dynamix/host/file_descriptor.h"

namespace dynamix {

class LaunchFolder {
 public:
  LaunchFolder();
  ~LaunchFolder();
  LaunchFolder(const LaunchFolder&) = delete;
  LaunchFolder& operator=(const LaunchFolder&) = delete;
  // Empty when there can be none.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FileDescriptor lock_;
};

// Returns the paths of those it removed; folders of other users stay when they must.
std::vector<std::string> RemoveLeftLaunchFolders();

}  // namespace dynamix
