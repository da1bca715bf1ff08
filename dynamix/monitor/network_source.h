// A network source: what the TCP of one job did during a window. Five tiers of truth, four real
// sources; the monitor opens the best one that the kernel and the privileges of the process allow.
//
// A source belongs to one thread. Opening one may fail (Error says what was refused), and so may a
// read, for instance when the job's namespace is gone; the caller then goes on with the next tier.
// No source blocks: every wait inside has a deadline of some milliseconds.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "dynamix/core/report.h"
#include "dynamix/core/result.h"

namespace dynamix {

// Since the previous read (the first: since the source was opened). What a tier cannot know is
// kMissing. Byte counts are of payload, but for the interface tier, which counts frames.
struct NetworkWindow {
  double bytes_sent = kMissing;              // acknowledged by the peers, >= 0
  double bytes_received = kMissing;          // >= 0
  double segments_sent = kMissing;           // with data, retransmissions included, >= 0
  double segments_retransmitted = kMissing;  // >= 0
  double timeouts = kMissing;                // retransmission timers that fired, >= 0; missing
                                             // while sockets older than the source are open
  // Means over sockets, weighted by the bytes each had acknowledged in the window.
  double smoothed_rtt_us = kMissing;    // > 0
  double minimum_rtt_us = kMissing;     // of each socket its smallest, > 0
  double congestion_window = kMissing;  // segments, > 0
  // Harmonic mean of the sockets' delivery rates, weighted by bytes: bytes over the time they take
  // at the rate the path delivered them, so idle time does not count. > 0
  double delivery_mbps = kMissing;
  double open_sockets = kMissing;  // at the end of the window, >= 0
};

NetworkReport ToReport(const NetworkWindow& window, NetworkTier tier);

// "eBPF", "inet_diag", "TCP_INFO", "interface", "none".
const char* Name(NetworkTier tier);
// As flags and options spell it: ebpf, inet_diag, own_sockets, interface, none. Throws InputError
// naming `field` for anything else.
NetworkTier ParseNetworkTier(std::string_view field, std::string_view name);

// Whose network and CPU are measured.
struct Target {
  int pid = 0;         // the process and its descendants; 0 is the calling process
  std::string cgroup;  // folder in the cgroup file system; when set, counts instead of the pid
};

class NetworkSource {
 public:
  virtual ~NetworkSource() = default;
  virtual NetworkTier tier() const = 0;
  virtual Result<NetworkWindow> ReadWindow() = 0;
};

using OpenedSource = Result<std::unique_ptr<NetworkSource>>;

// sock_ops on the cgroup (version 2). Needs CAP_BPF and CAP_NET_ADMIN; with CAP_PERFMON as well it
// is exact to the byte at each read and sees sockets that were open before; `note` then stays
// empty, else it says what is less exact. Everything goes away with the object or the process.
OpenedSource OpenEbpfSource(const std::string& cgroup, std::string* note);

// netlink sock_diag. Needs no capability for the processes of the same user. Sockets that open and
// close between two reads are not seen.
OpenedSource OpenInetDiagSource(const Target& target);

// getsockopt(TCP_INFO) on the sockets of the calling process, and of no other. Which ones there are is
// looked up at most every `refresh_seconds`.
OpenedSource OpenOwnSocketsSource(double refresh_seconds = 0);

// Byte counters of the network interfaces that the target's process sees, and the retransmissions
// of its network namespace. `interface` empty: all but loopback, or loopback when there is no
// other.
OpenedSource OpenInterfaceSource(const Target& target, const std::string& interface);

}  // namespace dynamix
