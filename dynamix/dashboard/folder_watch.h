// FolderWatch: shows the runs of a folder on a dashboard, finished ones and those that are being
// written, whoever writes them. The folder is one run, or holds runs (a comparison, an arbitrator's).
//
// Reads from a thread of its own, a few times per second, only what was added. Files that cannot be
// read are left out.
#pragma once

#include <filesystem>
#include <memory>

#include "dynamix/dashboard/dashboard.h"

namespace dynamix {

class FolderWatch {
 public:
  // `dashboard` is borrowed and outlives this object. `folder` need not exist yet.
  FolderWatch(Dashboard& dashboard, std::filesystem::path folder);
  ~FolderWatch();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dynamix
