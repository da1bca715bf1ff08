// Cgroups: where a process stands, and one that a launcher makes for a worker.
//
// The launcher creates one Cgroup per worker, and the child enters it between fork and exec, before
// it opens a socket; so the eBPF source sees all of its traffic, and nobody else's. Version 2
// carries the network programs; the CPU limit goes where the machine keeps its cpu controller
// (version 1 or 2). One thread at a time per object. Failures (no privilege, no cgroup file system)
// are Errors: the worker then runs without, and the monitor falls back to another tier.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dynamix/core/result.h"

namespace dynamix {

// Folders of one process or job in each hierarchy; empty where there is none. On a machine with
// version 2 only, all are the same folder.
struct CgroupPaths {
  std::string unified;  // version 2
  std::string cpu, cpu_accounting, memory;
};

// Folders of a process; 0 is the calling one.
CgroupPaths FindCgroups(int pid);

// The same for a folder of the version 2 hierarchy: its twins with the same path in version 1.
CgroupPaths FindCgroups(const std::string& unified_folder);

// The root of the hierarchy holds the whole machine, so it is nobody's job.
bool IsRootCgroup(const std::string& folder);

// Processes in the folder and below it.
std::vector<int> ProcessesIn(const std::string& folder);

// The folder of a job by its name, below the caller's own cgroup; workers are folders in it.
std::string JobCgroup(std::string_view job);

class Cgroup {
 public:
  // Makes "JOB" or "JOB/WORKER" below the caller's own cgroup, as JobCgroup() names it. A folder
  // left behind by an earlier run is taken over. Names are letters, digits, '-', '_' and '.';
  // others throw InputError.
  static Result<Cgroup> Create(std::string_view name);

  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&& other) noexcept;
  // Removes the folders, as Remove() does, but does not wait.
  ~Cgroup();

  // CPU time per second of wall-clock time, > 0: 0.25 is a quarter of one core.
  Status LimitCpus(double cpus);

  // Moves the calling process in. Only write(2): may be called between fork and exec.
  bool Enter() const noexcept;
  Status Enter(int pid) const;

  // Removes the folders; waits up to a second for processes in them to end. The job's folder goes
  // with its last worker.
  Status Remove();

  // The version 2 folder, for MonitorOptions::target.cgroup.
  const std::string& path() const { return path_; }

 private:
  Cgroup() = default;
  Status Add(const std::string& folder);

  std::string path_;
  std::vector<std::string> folders_;  // version 2 first; empty once removed
  std::vector<int> process_files_;    // cgroup.procs of each, open for Enter()
};

}  // namespace dynamix
