#include "dynamix/host/worker_cgroups.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <system_error>

namespace dynamix {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGroupPrefix = "dynamix-";

// "dynamix-launch-PID" or "dynamix-launch-PID-NAME": who made the cgroup of that name. A pid of 0:
// it is not one of ours.
RunningJob Parse(const std::string& folder_name) {
  RunningJob parsed;
  for (const std::string_view kind : {"dynamix-testbed-", "dynamix-launch-"}) {
    if (!folder_name.starts_with(kind)) continue;
    int pid = 0;
    const char* const last = folder_name.data() + folder_name.size();
    const auto [end, error] = std::from_chars(folder_name.data() + kind.size(), last, pid);
    if (error != std::errc{} || (end != last && *end != '-')) continue;
    parsed.pid = pid;
    parsed.job = std::string(folder_name.data() + kGroupPrefix.size(), end);
    if (end != last) parsed.name = std::string(end + 1, last);
  }
  return parsed;
}

int OwnerOf(const std::string& name) { return Parse(name).pid; }

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  return folders;
}

// Whether somebody in there has another table of processes, as in a container: the owner's number means
// nothing here then.
bool OfAnotherProcessTable(const std::vector<int>& processes) {
  std::error_code ignored;
  const fs::path own = fs::read_symlink("/proc/self/ns/pid", ignored);
  for (const int pid : processes) {
    const fs::path its = fs::read_symlink("/proc/" + std::to_string(pid) + "/ns/pid", ignored);
    if (!its.empty() && its != own) return true;
  }
  return false;
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

WorkerCgroups::WorkerCgroups(const std::string& kind, int workers, const std::string& name)
    : job_(kind + "-" + std::to_string(getpid()) + (name.empty() ? "" : "-" + name)) {
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

std::vector<RunningJob> RunningJobs() {
  std::vector<RunningJob> jobs;
  fs::path top = FindCgroups(0).unified;
  while (!top.empty() && !IsRootCgroup(top.string()) && top != top.parent_path())
    top = top.parent_path();
  if (top.empty()) return jobs;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(top, fs::directory_options::skip_permission_denied,
                                           ignored);
       at != fs::recursive_directory_iterator(); at.increment(ignored)) {
    if (!at->is_directory(ignored)) continue;
    RunningJob job = Parse(at->path().filename().string());
    if (job.pid == 0 || !fs::exists("/proc/" + std::to_string(job.pid))) continue;
    job.folder = at->path().string();
    job.workers = static_cast<int>(FoldersIn(at->path()).size());
    jobs.push_back(std::move(job));
    at.disable_recursion_pending();
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const RunningJob& a, const RunningJob& b) { return a.pid < b.pid; });
  return jobs;
}

std::vector<std::string> RemoveLeftovers() {
  const CgroupPaths own = FindCgroups(0);
  std::set<std::string> removed;
  for (const std::string& top : std::set<std::string>{own.unified, own.cpu}) {
    for (const fs::path& folder : FoldersIn(top)) {
      const std::string name = folder.filename().string();
      const int owner = OwnerOf(name);
      if (owner == 0 || fs::exists("/proc/" + std::to_string(owner))) continue;
      const std::vector<int> processes = ProcessesIn(folder.string());
      if (OfAnotherProcessTable(processes)) continue;
      for (const int pid : processes) kill(pid, SIGKILL);
      if (RemoveTree(folder)) removed.insert(name.substr(kGroupPrefix.size()));
    }
  }
  return {removed.begin(), removed.end()};
}

}  // namespace dynamix
