// The dashboard as commands offer it: its flags, and a server of it that lives beside the work.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "dynamix/cli/advisor_flags.h"
#include "dynamix/dashboard/folder_watch.h"

namespace dynamix {

struct DashboardFlags {
  std::string address;  // HOST:PORT; empty: none
  std::string token;    // file; needed beyond loopback
};

// --dashboard and --dashboard-token-file.
void AddDashboardFlags(CLI::App& command, DashboardFlags& flags);

// Null without an address. Says on stderr where it is, unless `quiet`. Throws InputError for what
// is no address, std::runtime_error for one that cannot be used. Signals go to the caller's thread, never to the dashboard's.
std::unique_ptr<Dashboard> StartDashboard(const DashboardFlags& flags, const TlsFlags& tls,
                                          bool quiet);

// A dashboard of what a folder holds and gets (FolderWatch), while this object lives. Without a folder
// the caller adds rounds.
class ShownFolder {
 public:
  ShownFolder(const DashboardFlags& flags, const TlsFlags& tls, const std::filesystem::path& folder,
              bool quiet);

  Dashboard* dashboard() const { return dashboard_.get(); }  // null without an address

 private:
  std::unique_ptr<Dashboard> dashboard_;
  std::unique_ptr<FolderWatch> watch_;
};

}  // namespace dynamix
