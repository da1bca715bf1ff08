#include "dynamix/host/worker_cgroups.h"

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <set>
#include <system_error>

namespace dynamix {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "dynamix-";

// The process that made the cgroup of that name; 0 when it is not one of ours.
int OwnerOf(std::string_view name) {
  for (const std::string_view kind : {"dynamix-testbed-", "dynamix-launch-"}) {
    if (!name.starts_with(kind)) continue;
    int pid = 0;
    const std::string_view digits = name.substr(kind.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
    if (error == std::errc{} && end == digits.data() + digits.size()) return pid;
  }
  return 0;
}

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  return folders;
}

// Cgroups hold no folders but cgroups; the kernel removes their files with them.
bool RemoveTree(const fs::path& folder) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    for (const fs::path& inner : FoldersIn(folder)) (void)rmdir(inner.c_str());
    if (rmdir(folder.c_str()) == 0 || !fs::exists(folder)) return true;
    usleep(10000);  // the killed take a moment to go
  }
  return false;
}

}  // namespace

WorkerCgroups::WorkerCgroups(const std::string& kind, int workers)
    : job_(kind + "-" + std::to_string(getpid())) {
  RemoveLeftovers();
  for (int rank = 0; rank < workers; ++rank) {
    Result<Cgroup> made = Cgroup::Create(job_ + "/rank-" + std::to_string(rank));
    if (!made) {
      error_ = made.error();
      cgroups_.clear();
      return;
    }
    cgroups_.push_back(std::move(made).value());
  }
}

WorkerCgroups::~WorkerCgroups() {
  for (Cgroup& cgroup : cgroups_) (void)cgroup.Remove();
}

bool WorkerCgroups::Enter(int rank) const noexcept {
  return cgroups_.empty() || cgroups_[rank].Enter();
}

Status WorkerCgroups::LimitCpus(int rank, double cpus) {
  if (cgroups_.empty()) return Error{error_};
  return cgroups_[rank].LimitCpus(cpus);
}

std::vector<std::string> RemoveLeftovers() {
  const CgroupPaths own = FindCgroups(0);
  std::set<std::string> removed;
  for (const std::string& top : std::set<std::string>{own.unified, own.cpu}) {
    for (const fs::path& folder : FoldersIn(top)) {
      const std::string name = folder.filename().string();
      const int owner = OwnerOf(name);
      if (owner == 0 || fs::exists("/proc/" + std::to_string(owner))) continue;
      for (const int pid : ProcessesIn(folder.string()))
        if (pid > 0) kill(pid, SIGKILL);
      if (RemoveTree(folder)) removed.insert(name.substr(kPrefix.size()));
    }
  }
  return {removed.begin(), removed.end()};
}

}  // namespace dynamix
