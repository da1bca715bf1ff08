#include "dynamix/cli/monitor_view.h"

#include <algorithm>
#include <map>

#include "dynamix/evaluation/table.h"

namespace dynamix {
namespace {

std::string Cell(double value, int digits, double scale = 1) {
  return IsMissing(value) ? "-" : Fixed(value * scale, digits);
}

std::string Percent(double share, int digits = 0) {
  return IsMissing(share) ? "-" : Fixed(share * 100, digits) + "%";
}

std::string Mbps(double bytes, double seconds) {
  return IsMissing(bytes) || seconds <= 0 ? "-" : Fixed(bytes * 8e-6 / seconds, 1);
}

nlohmann::json Number(double value) {
  return IsMissing(value) ? nlohmann::json() : nlohmann::json(value);
}

nlohmann::json NetworkJson(const NetworkWindow& network, const NetworkReport& report) {
  return {{"bytes_sent", Number(network.bytes_sent)},
          {"bytes_received", Number(network.bytes_received)},
          {"segments_sent", Number(network.segments_sent)},
          {"segments_retransmitted", Number(network.segments_retransmitted)},
          {"retransmission_ratio", Number(report.retransmission_ratio)},
          {"timeouts", Number(network.timeouts)},
          {"smoothed_rtt_us", Number(network.smoothed_rtt_us)},
          {"minimum_rtt_us", Number(network.minimum_rtt_us)},
          {"congestion_window", Number(network.congestion_window)},
          {"delivery_mbps", Number(network.delivery_mbps)},
          {"open_sockets", Number(network.open_sockets)}};
}

nlohmann::json HostJson(const HostWindow& host) {
  return {{"cpu_seconds", Number(host.cpu_seconds)},
          {"allotted_cpus", Number(host.allotted_cpus)},
          {"cpu_use", Number(host.cpu_use)},
          {"cpu_throttled", Number(host.cpu_throttled)},
          {"cpu_pressure", Number(host.cpu_pressure)},
          {"memory_pressure", Number(host.memory_pressure)},
          {"io_pressure", Number(host.io_pressure)},
          {"resident_bytes", Number(host.resident_bytes)},
          {"memory_used_bytes", Number(host.memory_used_bytes)},
          {"memory_limit_bytes", Number(host.memory_limit_bytes)},
          {"major_faults", Number(host.major_faults)},
          {"context_switches", Number(host.context_switches)}};
}

const std::map<std::string, double (*)(const MonitorWindow& window)> kOrders = {
    {"cpu", [](const MonitorWindow& w) { return w.host.cpu_use; }},
    {"memory", [](const MonitorWindow& w) { return w.host.resident_bytes; }},
    {"received", [](const MonitorWindow& w) { return w.network.bytes_received; }},
    {"retransmissions", [](const MonitorWindow& w) { return w.network.segments_retransmitted; }},
    {"rtt", [](const MonitorWindow& w) { return w.network.smoothed_rtt_us; }},
    {"sent", [](const MonitorWindow& w) { return w.network.bytes_sent; }}};

}  // namespace

std::vector<std::string> MonitorOrders() {
  std::vector<std::string> names = {"worker"};
  for (const auto& [name, value] : kOrders) names.push_back(name);
  return names;
}

std::string MonitorTable(std::vector<WorkerWindow> workers, const std::string& order,
                         std::size_t width) {
  constexpr double kGigabyte = 1.0 / (1 << 30);
  if (const auto by = kOrders.find(order); by != kOrders.end())
    std::stable_sort(workers.begin(), workers.end(), [&](const auto& a, const auto& b) {
      const double left = by->second(a.second), right = by->second(b.second);
      return !IsMissing(left) && (IsMissing(right) || left > right);
    });
  Table table({"worker", "tier", "CPU", "RSS GiB", "sent Mbit/s", "received", "path", "retrans",
               "timeouts", "RTT ms", "min RTT", "window", "sockets", "throttled", "pressure",
               "memory GiB", "of"});
  for (const auto& [name, window] : workers) {
    const NetworkWindow& network = window.network;
    const HostReport host = window.HostPart();
    table.Add(
        {name, Name(window.tier), Percent(host.cpu_use),
         Cell(window.host.resident_bytes, 2, kGigabyte), Mbps(network.bytes_sent, window.seconds),
         Mbps(network.bytes_received, window.seconds), Cell(network.delivery_mbps, 1),
         Percent(window.NetworkPart().retransmission_ratio, 2), Cell(network.timeouts, 0),
         Cell(network.smoothed_rtt_us, 3, 1e-3), Cell(network.minimum_rtt_us, 3, 1e-3),
         Cell(network.congestion_window, 0), Cell(network.open_sockets, 0),
         Percent(host.cpu_throttled), Percent(host.cpu_pressure),
         Cell(host.memory_used_bytes, 2, kGigabyte), Cell(host.memory_limit_bytes, 2, kGigabyte)});
  }
  return table.Text(width);
}

nlohmann::json MonitorJson(const WorkerWindow& worker, double unix_seconds) {
  const auto& [name, window] = worker;
  return {{"time", unix_seconds},
          {"worker", name},
          {"seconds", window.seconds},
          {"tier", Name(window.tier)},
          {"network", NetworkJson(window.network, window.NetworkPart())},
          {"host", HostJson(window.host)},
          {"device",
           {{"use", Number(window.device.use)},
            {"memory_used_bytes", Number(window.device.memory_used_bytes)},
            {"memory_limit_bytes", Number(window.device.memory_limit_bytes)}}}};
}

}  // namespace dynamix
