#include "dynamix/monitor/monitor.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "dynamix/host/capabilities.h"
#include "dynamix/monitor/process_tree.h"

namespace dynamix {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The cgroup whose sockets are the target's and nobody else's.
Result<std::string> OwnCgroup(const Target& target) {
  const std::string folder =
      target.cgroup.empty() ? FindCgroups(target.pid).unified : target.cgroup;
  if (folder.empty()) return Error{"no cgroup version 2 is mounted"};
  if (!target.cgroup.empty()) return folder;
  if (IsRootCgroup(folder)) return Error{"the process has no cgroup of its own"};
  const std::vector<int> tree = ProcessesOf(target);
  for (const int pid : ProcessesIn(folder))
    if (std::find(tree.begin(), tree.end(), pid) == tree.end())
      return Error{"its cgroup " + folder + " holds other processes too"};
  return folder;
}

// A job's cgroup may exist in version 2 only; limits then are those of the processes in it.
CgroupPaths HostCgroups(const Target& target) {
  if (target.cgroup.empty()) return FindCgroups(target.pid);
  CgroupPaths paths = FindCgroups(target.cgroup);
  const int pid = AnyProcess(target);
  if (pid == 0) return paths;
  const CgroupPaths process = FindCgroups(pid);
  if (paths.cpu.empty()) paths.cpu = process.cpu;
  if (paths.memory.empty()) paths.memory = process.memory;
  return paths;
}

}  // namespace

HostReport MonitorWindow::HostPart() const {
  HostReport report = ToReport(host);
  const MemoryUse nearest = Nearest({{host.memory_used_bytes, host.memory_limit_bytes},
                                     {device.memory_used_bytes, device.memory_limit_bytes}});
  report.memory_used_bytes = nearest.used_bytes;
  report.memory_limit_bytes = nearest.limit_bytes;
  return report;
}

struct Monitor::State {
  explicit State(MonitorOptions given) : options(std::move(given)) {}

  void Say(const std::string& sentence) const {
    if (options.say) options.say(sentence);
  }

  OpenedSource Open(NetworkTier tier) {
    switch (tier) {
      case NetworkTier::kEbpf: {
        auto folder = OwnCgroup(options.target);
        if (!folder.ok()) return Error{folder.error()};
        std::string note;
        OpenedSource opened = OpenEbpfSource(folder.value(), &note);
        if (!note.empty()) Say("network metrics: " + note);
        return opened;
      }
      case NetworkTier::kInetDiag:
        return OpenInetDiagSource(options.target);
      case NetworkTier::kOwnSockets:
        if (options.target.pid != 0 || !options.target.cgroup.empty())
          return Error{"the sockets are another process's"};
        return OpenOwnSocketsSource(options.refresh_seconds);
      case NetworkTier::kInterface:
        return OpenInterfaceSource(options.target, options.interface);
      case NetworkTier::kNone:
        break;
    }
    return Error{"nothing to open"};
  }

  // Opens the best source of this tier and below. `why` says what went before.
  void OpenFrom(NetworkTier best, std::string why) {
    source.reset();
    for (int tier = static_cast<int>(best); tier > 0 && !source; --tier) {
      const auto wanted = static_cast<NetworkTier>(tier);
      OpenedSource opened = Open(wanted);
      if (opened.ok())
        source = std::move(opened).value();
      else
        why += std::string(why.empty() ? "" : "; ") + Name(wanted) + ": " + opened.error();
    }
    Say(std::string("network metrics: ") + Name(tier()) +
        (why.empty() ? "" : " (refused: " + why + ")"));
  }

  NetworkTier tier() const { return source ? source->tier() : NetworkTier::kNone; }

  void StartAll() {
    OpenFrom(options.best_tier, "");
    host.emplace(options.target, HostCgroups(options.target), Now());
    if (options.device >= 0) {
      if (auto opened = Nvml::Open(options.device, options.device_library); opened.ok())
        device.emplace(std::move(opened).value());
      else
        Say("device metrics: none (" + opened.error() + ")");
    }
    if (options.drop_capabilities && tier() == NetworkTier::kEbpf) {
      if (Status dropped = DropCapabilities(); !dropped.ok())
        Say("capabilities are kept: " + dropped.error());
    }
    window_start = Now();
  }

  MonitorWindow Read() {
    MonitorWindow window;
    const double now = Now();
    window.seconds = now - std::exchange(window_start, now);
    if (host) {
      if (now - host_read >= options.refresh_seconds) {
        host_window = host->ReadWindow(now);
        host_read = now;
      }
      window.host = host_window;
    }
    if (device) window.device = device->Read();
    if (source) {
      auto read = source->ReadWindow();
      if (read.ok())
        window.network = read.value();
      else
        OpenFrom(static_cast<NetworkTier>(static_cast<int>(tier()) - 1),
                 std::string(Name(tier())) + ": " + read.error());
    }
    window.tier = tier();
    return window;
  }

  // Runs `step` and turns whatever it throws into a sentence.
  template <typename Step>
  void Guard(const Step& step) noexcept {
    try {
      try {
        step();
      } catch (const std::exception& failure) {
        source.reset();
        host.reset();
        device.reset();
        Say(std::string("the monitor stopped measuring: ") + failure.what());
      }
    } catch (...) {
      // The one who listens to sentences threw: there is nobody left to tell.
    }
  }

  MonitorOptions options;
  std::unique_ptr<NetworkSource> source;
  std::optional<HostMeter> host;
  std::optional<Nvml> device;
  HostWindow host_window;  // of the last read
  double window_start = 0, host_read = -kInfinity;
};

Monitor::Monitor(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Monitor::Monitor(Monitor&&) noexcept = default;
Monitor& Monitor::operator=(Monitor&&) noexcept = default;
Monitor::~Monitor() = default;

Monitor Monitor::Start(MonitorOptions options) noexcept {
  auto state = std::make_unique<State>(std::move(options));
  state->Guard([&] { state->StartAll(); });
  return Monitor(std::move(state));
}

MonitorWindow Monitor::ReadWindow() noexcept {
  MonitorWindow window;
  state_->Guard([&] { window = state_->Read(); });
  return window;
}

NetworkTier Monitor::tier() const noexcept { return state_->tier(); }

std::function<void(Report&)> MakeMeasure(MonitorOptions options) {
  // Shared, because a std::function is copied and the copies are one monitor.
  const auto monitor = std::make_shared<Monitor>(Monitor::Start(std::move(options)));
  return [monitor](Report& report) {
    const MonitorWindow window = monitor->ReadWindow();
    report.network = window.NetworkPart();
    report.host = window.HostPart();
  };
}

}  // namespace dynamix
