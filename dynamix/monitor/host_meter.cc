#include "dynamix/monitor/host_meter.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "dynamix/host/proc_text.h"
#include "dynamix/host/text_file.h"
#include "dynamix/monitor/process_tree.h"

namespace dynamix {
namespace {

constexpr double kNoLimitBytes = 0x1p60;  // version 1 writes "no limit" as a number near 2^63
constexpr double kProcessesAgeSeconds = 1;

std::optional<double> NumberIn(const std::string& path, std::string_view key, double unit) {
  const auto text = ReadTextFile(path);
  const auto number = text ? NumberAfter(*text, key) : std::nullopt;
  if (!number) return std::nullopt;
  return static_cast<double>(*number) * unit;
}

std::optional<double> NumberIn(const std::string& path) {
  const auto text = ReadTextFile(path);
  const auto number = text ? WholeNumber(*text) : std::nullopt;
  if (!number) return std::nullopt;
  return static_cast<double>(*number);
}

// The folder and those around it, up to the root of the hierarchy.
std::vector<std::string> Levels(std::string folder) {
  std::vector<std::string> levels;
  while (folder.size() > 1 && access((folder + "/cgroup.procs").c_str(), F_OK) == 0) {
    levels.push_back(folder);
    folder.resize(folder.rfind('/'));
  }
  return levels;
}

// CPUs that the quota of one cgroup allows.
std::optional<double> QuotaCpus(const std::string& folder) {
  if (const auto text = ReadTextFile(folder + "/cpu.max")) {  // version 2: "QUOTA PERIOD"
    const auto quota = WholeNumber(*text);
    const auto period = NumberAfter(*text, text->substr(0, text->find(' ')));
    if (!quota || !period || *period == 0) return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
  }
  const auto quota = NumberIn(folder + "/cpu.cfs_quota_us");  // -1, so nothing, without a quota
  const auto period = NumberIn(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *period == 0) return std::nullopt;
  return *quota / *period;
}

MemoryUse CgroupMemory(const std::string& folder) {
  const bool version2 = access((folder + "/memory.max").c_str(), F_OK) == 0;
  const auto limit = NumberIn(folder + (version2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used = NumberIn(folder + (version2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used || *limit >= kNoLimitBytes) return {};
  const auto droppable =
      NumberIn(folder + "/memory.stat", version2 ? "inactive_file" : "total_inactive_file", 1);
  return {std::max(0.0, *used - droppable.value_or(0)), *limit};
}

MemoryUse HostMemory() {
  const auto total = NumberIn("/proc/meminfo", "MemTotal:", 1024);
  const auto available = NumberIn("/proc/meminfo", "MemAvailable:", 1024);
  if (!total || !available) return {};
  return {*total - *available, *total};
}

// Address space or data of one process against its own limit.
MemoryUse LimitedMemory(int pid, __rlimit_resource limit_kind, std::string_view key) {
  rlimit limit{};
  if (prlimit(pid, limit_kind, nullptr, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  const auto used = NumberIn("/proc/" + std::to_string(pid) + "/status", key, 1024);
  if (!used) return {};
  return {*used, static_cast<double>(limit.rlim_cur)};
}

double ProcessCpuSeconds(int pid) {
  clockid_t clock;
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double ContextSwitches(int pid) {
  double switches = 0;
  for (const std::string& thread : ThreadFolders(pid)) {
    const auto status = ReadTextFile(thread + "/status");
    if (!status) continue;
    for (const char* key : {"voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"})
      switches += static_cast<double>(NumberAfter(*status, key).value_or(0));
  }
  return switches;
}

double Share(double part, double whole) { return std::clamp(part / whole, 0.0, 1.0); }

}  // namespace

HostReport ToReport(const HostWindow& window) {
  HostReport report;
  report.cpu_use = window.cpu_use;
  report.cpu_throttled = window.cpu_throttled;
  report.cpu_pressure = window.cpu_pressure;
  report.memory_used_bytes = window.memory_used_bytes;
  report.memory_limit_bytes = window.memory_limit_bytes;
  return report;
}

MemoryUse Nearest(const std::vector<MemoryUse>& uses) {
  MemoryUse nearest;
  for (const MemoryUse& use : uses) {
    if (IsMissing(use.used_bytes) || !(use.limit_bytes > 0)) continue;
    const bool nearer = IsMissing(nearest.limit_bytes) ||
                        use.used_bytes * nearest.limit_bytes > nearest.used_bytes * use.limit_bytes;
    if (nearer) nearest = use;
  }
  return nearest;
}

HostMeter::HostMeter(Target target, const CgroupPaths& cgroups, double now_seconds)
    : target_(std::move(target)),
      cpu_levels_(Levels(cgroups.cpu)),
      memory_levels_(Levels(cgroups.memory)) {
  // A cgroup that was named is the target; the one a process happens to be in may hold others.
  if (!target_.cgroup.empty()) {
    for (const std::string& folder : {cgroups.cpu_accounting, cgroups.unified})
      if (!folder.empty() && accounting_folder_.empty()) accounting_folder_ = folder;
  }
  const std::string& unified = cgroups.unified;
  if (!unified.empty() && ReadTextFile(unified + "/cpu.pressure")) pressure_folder_ = unified;
  last_ = Read(now_seconds);
}

HostWindow HostMeter::ReadWindow(double now_seconds) {
  const Counters before = std::exchange(last_, Read(now_seconds));
  const double seconds = last_.at_seconds - before.at_seconds;
  const auto grown = [&](std::optional<double> Counters::*counter) {
    if (!(before.*counter) || !(last_.*counter)) return kMissing;
    return std::max(0.0, *(last_.*counter) - *(before.*counter));
  };
  const auto share = [&](std::optional<double> Counters::*counter) {
    const double part = grown(counter);
    return IsMissing(part) || seconds <= 0 ? kMissing : Share(part, seconds);
  };
  HostWindow window;
  window.cpu_seconds = grown(&Counters::cpu_seconds);
  window.allotted_cpus = AllottedCpus();
  if (!IsMissing(window.cpu_seconds) && seconds > 0)
    window.cpu_use = Share(window.cpu_seconds, seconds * window.allotted_cpus);
  window.cpu_throttled = share(&Counters::throttled_seconds);
  window.cpu_pressure = share(&Counters::cpu_pressure);
  window.memory_pressure = share(&Counters::memory_pressure);
  window.io_pressure = share(&Counters::io_pressure);
  const MemoryUse memory = Nearest(MemoryUses());
  window.memory_used_bytes = memory.used_bytes;
  window.memory_limit_bytes = memory.limit_bytes;
  window.resident_bytes = ResidentBytes();
  window.major_faults = grown(&Counters::major_faults);
  window.context_switches = grown(&Counters::context_switches);
  return window;
}

HostMeter::Counters HostMeter::Read(double now_seconds) {
  // Looking for descendants reads all of /proc: not in every window.
  if (processes_.empty() || now_seconds - processes_read_seconds_ >= kProcessesAgeSeconds) {
    processes_ = ProcessesOf(target_);
    processes_read_seconds_ = now_seconds;
  }
  Counters counters;
  counters.at_seconds = now_seconds;
  counters.cpu_seconds = CpuSeconds(processes_);
  counters.throttled_seconds = ThrottledSeconds();
  counters.cpu_pressure = Pressure("cpu");
  counters.memory_pressure = Pressure("memory");
  counters.io_pressure = Pressure("io");
  for (const int pid : processes_) {
    const auto text = ReadTextFile("/proc/" + std::to_string(pid) + "/stat");
    const auto stat = text ? ParseProcessStat(*text) : std::nullopt;
    if (!stat) continue;
    counters.major_faults =
        counters.major_faults.value_or(0) + static_cast<double>(stat->major_faults);
    counters.context_switches = counters.context_switches.value_or(0) + ContextSwitches(pid);
  }
  return counters;
}

std::optional<double> HostMeter::CpuSeconds(const std::vector<int>& processes) const {
  if (!accounting_folder_.empty()) {
    if (const auto version1 = NumberIn(accounting_folder_ + "/cpuacct.usage"))
      return *version1 * 1e-9;
    return NumberIn(accounting_folder_ + "/cpu.stat", "usage_usec", 1e-6);
  }
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  std::optional<double> sum;
  for (const int pid : processes) {
    const auto text = ReadTextFile("/proc/" + std::to_string(pid) + "/stat");
    const auto stat = text ? ParseProcessStat(*text) : std::nullopt;
    if (!stat) continue;
    sum = sum.value_or(0) + ProcessCpuSeconds(pid) +
          static_cast<double>(stat->waited_children_ticks) * tick;
  }
  return sum;
}

std::optional<double> HostMeter::ThrottledSeconds() const {
  std::optional<double> sum;
  for (const std::string& level : cpu_levels_) {
    const auto text = ReadTextFile(level + "/cpu.stat");
    if (!text) continue;
    const auto version2_us = NumberAfter(*text, "throttled_usec");
    const auto version1_ns = NumberAfter(*text, "throttled_time");
    // A readable file without these lines is of a cgroup without a quota: held back for 0 s.
    sum = sum.value_or(0) + static_cast<double>(version2_us.value_or(0)) * 1e-6 +
          static_cast<double>(version1_ns.value_or(0)) * 1e-9;
  }
  return sum;
}

std::optional<double> HostMeter::Pressure(const char* resource) const {
  const auto text =
      ReadTextFile(pressure_folder_.empty() ? std::string("/proc/pressure/") + resource
                                            : pressure_folder_ + "/" + resource + ".pressure");
  return text ? ParsePressureSeconds(*text) : std::nullopt;
}

double HostMeter::AllottedCpus() const {
  double cpus = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t affinity;
  CPU_ZERO(&affinity);
  const int pid = processes_.empty() ? 0 : processes_.front();
  if (pid > 0 && sched_getaffinity(pid, sizeof affinity, &affinity) == 0)
    cpus = std::min(cpus, static_cast<double>(CPU_COUNT(&affinity)));
  for (const std::string& level : cpu_levels_)
    if (const auto quota = QuotaCpus(level)) cpus = std::min(cpus, *quota);
  return cpus;
}

double HostMeter::ResidentBytes() const {
  double pages = kMissing;
  for (const int pid : processes_) {
    const auto text = ReadTextFile("/proc/" + std::to_string(pid) + "/statm");
    std::uint64_t all = 0, resident = 0;  // the first two numbers
    if (!text || std::sscanf(text->c_str(), "%" SCNu64 " %" SCNu64, &all, &resident) != 2) continue;
    pages = (IsMissing(pages) ? 0 : pages) + static_cast<double>(resident);
  }
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::vector<MemoryUse> HostMeter::MemoryUses() const {
  std::vector<MemoryUse> uses = {HostMemory()};
  for (const std::string& level : memory_levels_) uses.push_back(CgroupMemory(level));
  if (!processes_.empty()) {
    uses.push_back(LimitedMemory(processes_.front(), RLIMIT_AS, "VmSize:"));
    uses.push_back(LimitedMemory(processes_.front(), RLIMIT_DATA, "VmData:"));
  }
  return uses;
}

}  // namespace dynamix
