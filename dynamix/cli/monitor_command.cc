#include "dynamix/cli/monitor_command.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dynamix/cli/interrupt.h"
#include "dynamix/cli/monitor_view.h"
#include "dynamix/cli/terminal.h"
#include "dynamix/core/input_error.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/host/cgroup.h"
#include "dynamix/host/worker_cgroups.h"
#include "dynamix/monitor/monitor.h"

namespace dynamix {
namespace {

using Clock = std::chrono::steady_clock;

struct MonitorFlags {
  int pid = 0;
  std::string cgroup, job, tier = "ebpf", interface, sort = "worker";
  int device = -1;
  double interval_s = 1;
  bool once = false, json = false;
};

const std::map<std::string, NetworkTier>& Tiers() {
  static const std::map<std::string, NetworkTier> kTiers = {{"ebpf", NetworkTier::kEbpf},
                                                            {"inet_diag", NetworkTier::kInetDiag},
                                                            {"interface", NetworkTier::kInterface}};
  return kTiers;
}

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The job's folder, from --cgroup or --job; empty with --pid.
std::string JobFolder(const MonitorFlags& flags) {
  if (flags.pid != 0) {
    if (!IsFolder("/proc/" + std::to_string(flags.pid)))
      throw InputError::OutOfRange("--pid", flags.pid, "a process that runs");
    return {};
  }
  const bool named = flags.cgroup.empty();
  std::string folder = named ? JobCgroup(flags.job) : flags.cgroup;
  if (named && !IsFolder(folder))  // a name that was given, or a job of another cgroup
    for (const RunningJob& running : RunningJobs())
      if (running.name == flags.job || running.job == flags.job) folder = running.folder;
  if (!IsFolder(folder) || access((folder + "/cgroup.procs").c_str(), F_OK) != 0)
    throw InputError::OutOfRange(named ? "--job" : "--cgroup", named ? flags.job : flags.cgroup,
                                 "a cgroup that exists (looked for " + folder + ")");
  return folder;
}

// A monitor per worker: a folder in the job's, or the job as a whole where there are none. Workers
// come and go.
class JobView {
 public:
  JobView(MonitorFlags flags, std::string folder)
      : flags_(std::move(flags)), folder_(std::move(folder)) {
    FindWorkers();
  }

  bool alive() const {
    return flags_.pid != 0 ? IsFolder("/proc/" + std::to_string(flags_.pid)) : IsFolder(folder_);
  }

  std::vector<WorkerWindow> ReadWindow() {
    std::vector<WorkerWindow> windows;
    for (auto& [name, monitor] : monitors_) windows.emplace_back(name, monitor.ReadWindow());
    FindWorkers();
    return windows;
  }

 private:
  void FindWorkers() {
    if (flags_.pid != 0) {
      Watch("pid " + std::to_string(flags_.pid), {.pid = flags_.pid, .cgroup = {}}, true);
      return;
    }
    std::map<std::string, std::string> found;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, gone))
      if (entry.is_directory(gone)) found[entry.path().filename()] = entry.path();
    const bool whole = found.empty();
    if (whole) found[std::filesystem::path(folder_).filename()] = folder_;
    std::erase_if(monitors_, [&](const auto& known) { return !found.contains(known.first); });
    // While workers may join, attaching to them needs the capabilities.
    for (const auto& [name, path] : found) Watch(name, {.pid = 0, .cgroup = path}, whole);
  }

  void Watch(const std::string& name, const Target& target, bool last) {
    if (monitors_.contains(name)) return;
    MonitorOptions options;
    options.target = target;
    options.best_tier = Tiers().at(flags_.tier);
    options.interface = flags_.interface;
    options.device = flags_.device;
    options.drop_capabilities = last;
    options.say = [name](const std::string& sentence) { spdlog::info("{}: {}", name, sentence); };
    monitors_.emplace(name, Monitor::Start(std::move(options)));
  }

  MonitorFlags flags_;
  std::string folder_;
  std::map<std::string, Monitor> monitors_;
};

// Over what was there before, line by line: a screen that is cleared first flickers.
std::string InPlace(const std::string& text) {
  std::string drawn = "\033[H";
  for (const char c : text) drawn += c == '\n' ? "\033[K\n" : std::string(1, c);
  return drawn + "\033[J";
}

// The jobs of this machine that can be watched by name.
void ListJobs(bool json) {
  const std::vector<RunningJob> jobs = RunningJobs();
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const RunningJob& job : jobs)
      list.push_back({{"job", job.job},
                      {"name", job.name},
                      {"pid", job.pid},
                      {"workers", job.workers},
                      {"cgroup", job.folder}});
    std::printf("%s\n", list.dump().c_str());
    return;
  }
  if (jobs.empty())
    std::printf("no job with cgroups runs here; dynamix monitor --pid PID watches any process\n");
  Table table({"job", "name", "pid", "workers"});
  for (const RunningJob& job : jobs)
    table.Add({job.job, job.name.empty() ? "-" : job.name, std::to_string(job.pid),
               std::to_string(job.workers)});
  if (!jobs.empty())
    std::printf("%s\nwatch one with dynamix monitor --job NAME\n", table.Text().c_str());
}

void Print(const std::vector<WorkerWindow>& workers, const MonitorFlags& flags) {
  if (flags.json) {
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    for (const WorkerWindow& worker : workers)
      std::printf("%s\n", MonitorJson(worker, now).dump().c_str());
  } else {
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    std::string table = MonitorTable(workers, flags.sort, TerminalWidth(STDOUT_FILENO));
    if (terminal) table = InPlace(table + "ctrl-C ends the monitor, not the job\n");
    std::printf("%s", table.c_str());
  }
  std::fflush(stdout);
}

// Sleeps in short steps, so that ctrl-C is answered at once.
void Wait(Clock::time_point until, const InterruptFlag& interrupted) {
  while (!interrupted && Clock::now() < until)
    std::this_thread::sleep_for(
        std::min<Clock::duration>(until - Clock::now(), std::chrono::milliseconds(50)));
}

void Run(const MonitorFlags& flags) {
  const int targets = (flags.pid != 0) + !flags.cgroup.empty() + !flags.job.empty();
  if (targets == 0) return ListJobs(flags.json);
  if (targets > 1)
    throw InputError(
        "dynamix monitor takes one of --pid, --cgroup and --job, or none to list jobs");
  const InterruptFlag interrupted;
  JobView view(flags, JobFolder(flags));
  auto next = Clock::now();
  while (!interrupted) {
    next += std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(flags.interval_s));
    Wait(next, interrupted);
    if (interrupted) return;  // asked to end: nothing was lost
    const bool ended = !view.alive();
    Print(view.ReadWindow(), flags);
    if (ended) spdlog::info("the job has ended");
    if (ended || flags.once) return;
  }
}

}  // namespace

void AddMonitorCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<MonitorFlags>();
  CLI::App* monitor =
      app.add_subcommand("monitor", "Live network, CPU and memory of a running job");
  monitor->add_option("--pid", flags->pid, "A process and its descendants")
      ->check(CLI::Range(1, 1 << 22));
  monitor->add_option("--cgroup", flags->cgroup, "A folder of the cgroup version 2 file system");
  monitor->add_option("--job", flags->job, "A job by the name it was launched with");
  monitor->add_option("--sort", flags->sort, "Order of the rows; largest first")
      ->check(CLI::IsMember(MonitorOrders()))
      ->capture_default_str();
  monitor->add_option("--interval", flags->interval_s, "Seconds per window")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  monitor->add_option("--tier", flags->tier, "Best source to try: ebpf, inet_diag, interface")
      ->check(CLI::IsMember({"ebpf", "inet_diag", "interface"}))
      ->capture_default_str();
  monitor->add_option("--interface", flags->interface,
                      "Network interface for the tier interface; default: all but loopback");
  monitor->add_option("--device", flags->device, "GPU to watch, as NVML counts")
      ->check(CLI::Range(0, 1023));
  monitor->add_flag("--once", flags->once, "One window, then end");
  monitor->add_flag("--json", flags->json, "One JSON object per worker and window");
  monitor->footer(
      "Without a target it lists the jobs of this machine.\n"
      "Examples:\n"
      "  dynamix monitor\n"
      "  dynamix monitor --job mine --sort sent\n"
      "  dynamix monitor --pid 4242 --json --interval 5");
  monitor->callback([flags] { Run(*flags); });
}

}  // namespace dynamix
