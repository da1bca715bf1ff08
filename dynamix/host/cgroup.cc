#include "dynamix/host/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/host/proc_text.h"
#include "dynamix/host/text_file.h"

namespace dynamix {
namespace {

constexpr int kPeriodUs = 100000;  // the kernel's default CPU quota period

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool HasWord(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

// Where the hierarchy of one controller is mounted; "" for version 2 asks for the unified one.
std::string MountOf(const std::vector<Mount>& mounts, std::string_view controller) {
  for (const Mount& mount : mounts) {
    const bool matches = controller.empty()
                             ? mount.type == "cgroup2"
                             : mount.type == "cgroup" && HasWord(mount.options, controller);
    if (matches) return mount.point;
  }
  return {};
}

// In a container the path may be the host's while the mount starts at the container's own cgroup:
// then the mount point is the place.
std::string Join(const std::string& mount, const std::string& path) {
  if (mount.empty()) return {};
  const std::string folder = path == "/" ? mount : mount + path;
  return Exists(folder) ? folder : mount;
}

std::vector<Mount> Mounts() { return ParseMounts(ReadTextFile("/proc/mounts").value_or("")); }

std::string ProcessFolder(int pid) { return "/proc/" + (pid > 0 ? std::to_string(pid) : "self"); }

std::string PathOf(const std::vector<CgroupLine>& lines, std::string_view controller) {
  for (const CgroupLine& line : lines)
    if (controller.empty() ? line.controllers.empty() : HasWord(line.controllers, controller))
      return line.path;
  return "/";
}

void RequireName(std::string_view name) {
  const bool legal = !name.empty() && name.find("..") == std::string_view::npos &&
                     std::count(name.begin(), name.end(), '/') <= 1 && name.front() != '/' &&
                     name.back() != '/' &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) {
                       return std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
                     });
  if (!legal)
    throw InputError::OutOfRange("cgroup name", name,
                                 "JOB or JOB/WORKER of letters, digits, '-', '_' and '.'");
}

std::string Parent(const std::string& folder) { return folder.substr(0, folder.rfind('/')); }

constexpr std::string_view kPrefix = "/dynamix-";

// The job's folder around a worker's; empty when the folder is the job's own, whose parent is not
// ours to make or remove.
std::string JobAround(const std::string& folder) {
  const std::string parent = Parent(folder);
  return parent.substr(parent.rfind('/')).starts_with(kPrefix) ? parent : std::string();
}

int RemoveFolder(const std::string& folder) {
  if (rmdir(folder.c_str()) != 0) return errno;
  // Stays while other workers are in it.
  if (const std::string job = JobAround(folder); !job.empty()) rmdir(job.c_str());
  return 0;
}

}  // namespace

CgroupPaths FindCgroups(int pid) {
  const std::vector<Mount> mounts = Mounts();
  const auto lines = ParseProcessCgroups(ReadTextFile(ProcessFolder(pid) + "/cgroup").value_or(""));
  CgroupPaths paths;
  paths.unified = Join(MountOf(mounts, ""), PathOf(lines, ""));
  const auto find = [&](std::string_view controller) {
    const std::string mount = MountOf(mounts, controller);
    return mount.empty() ? paths.unified : Join(mount, PathOf(lines, controller));
  };
  paths.cpu = find("cpu");
  paths.cpu_accounting = find("cpuacct");
  paths.memory = find("memory");
  return paths;
}

CgroupPaths FindCgroups(const std::string& unified_folder) {
  const std::vector<Mount> mounts = Mounts();
  CgroupPaths paths;
  paths.unified = unified_folder;
  const std::string root = MountOf(mounts, "");
  const std::string path =
      unified_folder.starts_with(root) ? unified_folder.substr(root.size()) : std::string();
  const auto find = [&](std::string_view controller) -> std::string {
    const std::string mount = MountOf(mounts, controller);
    if (mount.empty()) return unified_folder;
    return !path.empty() && Exists(mount + path) ? mount + path : std::string();
  };
  paths.cpu = find("cpu");
  paths.cpu_accounting = find("cpuacct");
  paths.memory = find("memory");
  return paths;
}

// Only cgroups below the real root have this file, also when a cgroup namespace calls one "/".
bool IsRootCgroup(const std::string& folder) { return !Exists(folder + "/cgroup.events"); }

std::vector<int> ProcessesIn(const std::string& folder) {
  std::vector<int> processes =
      ParseProcessList(ReadTextFile(folder + "/cgroup.procs").value_or(""));
  DIR* directory = opendir(folder.c_str());
  if (directory == nullptr) return processes;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    const std::vector<int> below = ProcessesIn(folder + "/" + entry->d_name);
    processes.insert(processes.end(), below.begin(), below.end());
  }
  closedir(directory);
  return processes;
}

std::string JobCgroup(std::string_view job) {
  RequireName(job);
  const std::string own = FindCgroups(0).unified;
  return own.empty() ? own : own + std::string(kPrefix) + std::string(job);
}

Result<Cgroup> Cgroup::Create(std::string_view name) {
  const std::string folder = JobCgroup(name);
  if (folder.empty()) return Error{"no cgroup version 2 file system is mounted"};
  Cgroup cgroup;
  cgroup.path_ = folder;
  if (Status added = cgroup.Add(folder); !added.ok()) return Error{added.error()};
  return cgroup;
}

Status Cgroup::Add(const std::string& folder) {
  // The worker's folder may be the first of its job.
  for (const std::string& made : {JobAround(folder), folder}) {
    if (!made.empty() && mkdir(made.c_str(), 0755) != 0 && errno != EEXIST)
      return SystemError("mkdir " + made, errno);
  }
  folders_.push_back(folder);
  const std::string processes = folder + "/cgroup.procs";
  process_files_.push_back(open(processes.c_str(), O_WRONLY | O_CLOEXEC));
  if (process_files_.back() < 0) return SystemError(processes, errno);
  return Nothing{};
}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : path_(std::move(other.path_)),
      folders_(std::exchange(other.folders_, {})),
      process_files_(std::exchange(other.process_files_, {})) {}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(folders_, other.folders_);
  std::swap(process_files_, other.process_files_);
  return *this;
}

Cgroup::~Cgroup() {
  for (const int file : process_files_)
    if (file >= 0) close(file);
  for (const std::string& folder : folders_) RemoveFolder(folder);
}

Status Cgroup::LimitCpus(double cpus) {
  if (!(cpus > 0 && cpus < 1e5)) throw InputError::OutOfRange("cpus", cpus, "a number above 0");
  const auto quota = std::to_string(std::llround(std::max(cpus * kPeriodUs, 1000.0)));
  const std::vector<Mount> mounts = Mounts();
  const std::string version1 = MountOf(mounts, "cpu");
  if (version1.empty()) {
    // Enabling the controller fails where processes share the parent; cpu.max then is absent.
    (void)WriteTextFile(Parent(Parent(path())) + "/cgroup.subtree_control", "+cpu");
    (void)WriteTextFile(Parent(path()) + "/cgroup.subtree_control", "+cpu");
    return WriteTextFile(path() + "/cpu.max", quota + " " + std::to_string(kPeriodUs));
  }
  const std::string twin = version1 + path().substr(MountOf(mounts, "").size());
  if (folders_.size() == 1) {
    if (Status added = Add(twin); !added.ok()) return added;
  }
  return WriteTextFile(twin + "/cpu.cfs_quota_us", quota);
}

bool Cgroup::Enter() const noexcept {
  for (const int file : process_files_)
    if (write(file, "0", 1) != 1) return false;
  return true;
}

Status Cgroup::Enter(int pid) const {
  for (const std::string& folder : folders_) {
    if (Status moved = WriteTextFile(folder + "/cgroup.procs", std::to_string(pid)); !moved.ok())
      return moved;
  }
  return Nothing{};
}

Status Cgroup::Remove() {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  for (const std::string& folder : folders_) {
    int refused = 0;
    while ((refused = RemoveFolder(folder)) != 0 && refused != ENOENT) {
      if (refused != EBUSY || Clock::now() > deadline)
        return SystemError("rmdir " + folder, refused);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  for (const int file : process_files_)
    if (file >= 0) close(file);
  folders_.clear();
  process_files_.clear();
  return Nothing{};
}

}  // namespace dynamix
