// The interface source: what everybody may read. Frames of whole interfaces and retransmissions of
// the whole network namespace, so it is the job's only where the job has the machine, or a
// container, for itself.
#include <memory>
#include <optional>
#include <utility>

#include "dynamix/host/proc_text.h"
#include "dynamix/host/text_file.h"
#include "dynamix/monitor/network_source.h"
#include "dynamix/monitor/process_tree.h"

namespace dynamix {
namespace {

struct Counters {
  double sent = 0, received = 0;
  std::optional<SegmentCounts> segments;
};

class InterfaceSource final : public NetworkSource {
 public:
  InterfaceSource(std::string folder, std::string interface)
      : folder_(std::move(folder)), interface_(std::move(interface)) {}

  NetworkTier tier() const override { return NetworkTier::kInterface; }

  Result<NetworkWindow> ReadWindow() override {
    auto counters = Read();
    if (!counters.ok()) return Error{counters.error()};
    const Counters before = std::exchange(last_, std::move(counters).value());
    NetworkWindow window;
    window.bytes_sent = Grown(before.sent, last_.sent);
    window.bytes_received = Grown(before.received, last_.received);
    if (before.segments && last_.segments) {
      window.segments_retransmitted =
          Grown(before.segments->retransmitted, last_.segments->retransmitted);
      window.segments_sent =
          Grown(before.segments->sent, last_.segments->sent) + window.segments_retransmitted;
    }
    return window;
  }

 private:
  // An interface that went away takes its count with it.
  static double Grown(double before, double now) { return now > before ? now - before : 0; }

  Result<Counters> Read() const {
    const auto text = ReadTextFile(folder_ + "/dev");
    if (!text) return Error{folder_ + "/dev: not readable"};
    Counters all, loopback;
    bool any = false, found_loopback = false;
    for (const InterfaceBytes& interface : ParseInterfaces(*text)) {
      const bool is_loopback = interface.name == "lo";
      if (!interface_.empty() && interface.name != interface_) continue;
      Counters& sum = is_loopback && interface_.empty() ? loopback : all;
      sum.sent += static_cast<double>(interface.sent);
      sum.received += static_cast<double>(interface.received);
      (&sum == &loopback ? found_loopback : any) = true;
    }
    if (!any && !found_loopback)
      return Error{folder_ + "/dev: no interface " + (interface_.empty() ? "at all" : interface_)};
    Counters counters = any ? all : loopback;
    if (const auto statistics = ReadTextFile(folder_ + "/snmp"))
      counters.segments = ParseTcpSegments(*statistics);
    return counters;
  }

  std::string folder_, interface_;
  Counters last_;
};

}  // namespace

OpenedSource OpenInterfaceSource(const Target& target, const std::string& interface) {
  const int pid = AnyProcess(target);
  const std::string process = pid > 0 ? std::to_string(pid) : "self";
  auto source = std::make_unique<InterfaceSource>("/proc/" + process + "/net", interface);
  if (auto first = source->ReadWindow(); !first.ok()) return Error{first.error()};
  return std::unique_ptr<NetworkSource>(std::move(source));
}

}  // namespace dynamix
