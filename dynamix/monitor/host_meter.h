// The host meter: CPU, pressure, memory, faults and switches of a target during a window, from
// procfs and cgroups of version 1 or 2. Owned by one thread.
//
// A file that is absent or unreadable makes its own values kMissing, and nothing else; nothing here
// fails or throws. Times of a window come from the caller's clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dynamix/core/report.h"
#include "dynamix/host/cgroup.h"
#include "dynamix/monitor/network_source.h"

namespace dynamix {

// Since the previous read; the first window starts with the meter.
struct HostWindow {
  double cpu_seconds = kMissing;    // used by all processes of the target, >= 0
  double allotted_cpus = kMissing;  // quota or affinity, whichever is less, > 0
  double cpu_use = kMissing;        // cpu_seconds over allotted CPU time, [0, 1]
  double cpu_throttled = kMissing;  // share of the window a quota held the target back, [0, 1]
  // Shares of the window in which some task waited (PSI): of the cgroup, else of the host. [0, 1]
  double cpu_pressure = kMissing;
  double memory_pressure = kMissing;
  double io_pressure = kMissing;
  // Of the limit that is nearest: a cgroup's, a process limit's, or the host's memory. A cgroup's
  // use leaves out file pages that the kernel would drop first.
  double memory_used_bytes = kMissing;
  double memory_limit_bytes = kMissing;
  double resident_bytes = kMissing;    // of the target's processes, shared pages counted in each
  double major_faults = kMissing;      // >= 0
  double context_switches = kMissing;  // voluntary or not, of all threads, >= 0
};

HostReport ToReport(const HostWindow& window);

// Used over limit, for choosing the nearest.
struct MemoryUse {
  double used_bytes = kMissing, limit_bytes = kMissing;
};

// The one with the greatest share in use; missing ones lose.
MemoryUse Nearest(const std::vector<MemoryUse>& uses);

class HostMeter {
 public:
  // `cgroups`: folders of the target, as FindCgroups gives them.
  HostMeter(Target target, const CgroupPaths& cgroups, double now_seconds);

  HostWindow ReadWindow(double now_seconds);

 private:
  // Counters that only grow, at one instant.
  struct Counters {
    double at_seconds = 0;
    std::optional<double> cpu_seconds, throttled_seconds;
    std::optional<double> cpu_pressure, memory_pressure, io_pressure;  // seconds
    std::optional<double> major_faults, context_switches;
  };

  Counters Read(double now_seconds);
  std::optional<double> CpuSeconds(const std::vector<int>& processes) const;
  std::optional<double> ThrottledSeconds() const;
  std::optional<double> Pressure(const char* resource) const;
  double AllottedCpus() const;
  double ResidentBytes() const;
  std::vector<MemoryUse> MemoryUses() const;

  Target target_;
  // From the target's own cgroup to the top: a quota or limit anywhere above holds it back too.
  std::vector<std::string> cpu_levels_, memory_levels_;
  std::string accounting_folder_;  // empty: count processes
  std::string pressure_folder_;    // empty: the host's
  double processes_read_seconds_ = 0;
  std::vector<int> processes_;
  Counters last_;
};

}  // namespace dynamix
