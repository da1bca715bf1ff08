// The monitor: network and host metrics of one worker or one job, window by window.
//
//   MonitorOptions options;
//   options.target.cgroup = cgroup.path();          // or .pid; neither: the calling process
//   Monitor monitor = Monitor::Start(options);      // before the worker opens sockets
//   ... k iterations ...
//   const MonitorWindow window = monitor.ReadWindow();
//   report.network = window.NetworkPart();
//   report.host = window.HostPart();
//
// It must never stop, slow or kill training: nothing here throws or waits, and what the kernel or
// the privileges refuse degrades to the next tier (eBPF, inet_diag, TCP_INFO, interface, none),
// said once through `say`. One thread at a time per object. Nothing stays attached when the object
// or its process goes, however it goes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "dynamix/core/report.h"
#include "dynamix/monitor/host_meter.h"
#include "dynamix/monitor/network_source.h"
#include "dynamix/monitor/nvml.h"

namespace dynamix {

struct MonitorOptions {
  Target target;
  // The best tier to try; lower it to compare sources.
  NetworkTier best_tier = NetworkTier::kEbpf;
  // For the interface tier: one interface by name. Empty: all but loopback.
  std::string interface;
  // GPU of the worker as NVML counts; -1 for none. Its memory then bounds the worker too.
  int device = -1;
  std::string device_library = "libnvidia-ml.so.1";
  // The host's values, some 40 files, are read at most this often: a window that ends sooner after
  // the last read holds that read's values once more. As often the TCP_INFO source looks which
  // sockets there are. 0: in every window.
  double refresh_seconds = 0;
  // Give up all capabilities of the calling thread once eBPF is attached (the other tiers use what
  // the process may do at each read). Off by default: the monitor is a guest in the training
  // process.
  bool drop_capabilities = false;
  // Hears which tier was taken and why, and of each degradation: one sentence, once.
  std::function<void(const std::string&)> say;
};

struct MonitorWindow {
  double seconds = 0;  // length of the window
  NetworkTier tier = NetworkTier::kNone;
  NetworkWindow network;
  HostWindow host;
  DeviceWindow device;

  NetworkReport NetworkPart() const { return ToReport(network, tier); }
  // With a device, memory is that of host or device, whichever is nearer to its limit.
  HostReport HostPart() const;
};

class Monitor {
 public:
  static Monitor Start(MonitorOptions options) noexcept;
  Monitor(Monitor&&) noexcept;
  Monitor& operator=(Monitor&&) noexcept;
  ~Monitor();

  // What happened since the previous call, or since Start.
  MonitorWindow ReadWindow() noexcept;

  NetworkTier tier() const noexcept;

 private:
  struct State;
  explicit Monitor(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Adds what happened since the last call to a report, from a monitor that it starts now and keeps.
std::function<void(Report&)> MakeMeasure(MonitorOptions options);

}  // namespace dynamix
