// One cgroup per rank of a job on this machine: the eBPF monitor's boundary, and where CPU quotas
// go. Made before the ranks start, removed after they ended.
//
// Without the privilege there are none: error() says why, Enter does nothing and the monitor falls
// back to another tier. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/host/cgroup.h"

namespace dynamix {

class WorkerCgroups {
 public:
  // `kind`-PID is the job's name, for `dynamix monitor --job`; `kind` is testbed or launch. `name`
  // is the user's for it: letters, digits, '-', '_' and '.', or InputError. Removes the leftovers of
  // dead ones first.
  WorkerCgroups(const std::string& kind, int workers, const std::string& name = {});
  WorkerCgroups(const WorkerCgroups&) = delete;
  WorkerCgroups& operator=(const WorkerCgroups&) = delete;
  ~WorkerCgroups();

  // Moves the calling process in; may be called between fork and exec.
  bool Enter(int rank) const noexcept;
  Status LimitCpus(int rank, double cpus);

  const std::string& job() const { return job_; }
  const std::string& error() const { return error_; }

 private:
  std::string job_, error_;
  std::vector<Cgroup> cgroups_;  // empty, or one per rank
};

// A job of this machine that has cgroups.
struct RunningJob {
  std::string job;     // launch-PID or testbed-PID
  std::string name;    // the user's, or empty
  std::string folder;  // cgroup version 2
  int pid = 0;         // of the launcher
  int workers = 0;
};

// All of them, also those started in another cgroup than the caller's, in order of their process.
std::vector<RunningJob> RunningJobs();

// Removes the cgroups of testbeds and launches whose process is gone (kill -9, a crash), and kills
// what still runs in them; those of containers, whose processes have other numbers, are left alone.
// Returns their names.
std::vector<std::string> RemoveLeftovers();

}  // namespace dynamix
