// What the monitor costs: the eBPF program under an all-reduce load, reading a window in each tier,
// and the iteration time of a ring with and without it. Prints a table, or one JSON object with
// --json. Runs in a network and a cgroup of its own; without root, in the tiers that are left.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/monitor_ring.h"
#include "benchmarks/program_cost.h"
#include "dynamix/host/file_descriptor.h"
#include "dynamix/monitor/monitor.h"

namespace dynamix::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Line {
  std::string name;
  double value;
  const char* unit;
  double target;  // NaN: none
  const char* better;
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Quantile(std::vector<double> values, double share) {
  Require(!values.empty(), "something to take a quantile of");
  const auto index = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<long>(index), values.end());
  return values[index];
}

Monitor Watch(const Cgroup* cgroup) {
  MonitorOptions options;
  if (cgroup != nullptr) options.target.cgroup = cgroup->path();
  return Monitor::Start(options);
}

// Time of one read, the median of many. The reader takes what it needs open.
double ReadMs(const std::function<void()>& read) {
  std::vector<double> seconds;
  for (int i = 0; i < 300; ++i) {
    const auto start = Clock::now();
    read();
    seconds.push_back(SecondsSince(start));
  }
  return Quantile(seconds, 0.5) * 1e3;
}

// Connected sockets of this process: 64 ends of 32 connections.
std::vector<FileDescriptor> OpenSockets() {
  std::vector<FileDescriptor> sockets;
  FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  Require(bind(listener.get(), generic, length) == 0 && listen(listener.get(), 64) == 0 &&
              getsockname(listener.get(), generic, &length) == 0,
          "listen on loopback");
  for (int i = 0; i < 32; ++i) {
    FileDescriptor one(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Require(connect(one.get(), generic, length) == 0, "connect over loopback");
    FileDescriptor other(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Require(write(one.get(), "x", 1) == 1, "write");
    sockets.push_back(std::move(one));
    sockets.push_back(std::move(other));
  }
  return sockets;
}

void MeasureReads(const Cgroup* cgroup, std::vector<Line>& lines) {
  const auto measure = [&](const char* name, OpenedSource source) {
    if (!source.ok()) {
      std::fprintf(stderr, "monitor_bench: no %s here: %s\n", name, source.error().c_str());
      return;
    }
    const auto sockets = OpenSockets();
    const double ms = ReadMs([&] { Require(source.value()->ReadWindow().ok(), "read a window"); });
    lines.push_back({std::string("read_64_sockets_") + name, ms, "ms", 1, "lower"});
  };
  std::string note;
  if (cgroup != nullptr) measure("ebpf", OpenEbpfSource(cgroup->path(), &note));
  measure("inet_diag", OpenInetDiagSource({}));
  measure("tcp_info", OpenOwnSocketsSource());
  measure("interface", OpenInterfaceSource({}, ""));
  Monitor monitor = Watch(cgroup);
  const auto sockets = OpenSockets();
  lines.push_back(
      {"read_64_sockets_and_host", ReadMs([&] { (void)monitor.ReadWindow(); }), "ms", 1, "lower"});
}

// The program's own time under the ring, as the kernel measures it.
void MeasureProgram(const Cgroup& cgroup, std::vector<Line>& lines) {
  RingOptions options;
  options.iterations = 150;
  Monitor monitor = Watch(&cgroup);
  if (monitor.tier() != NetworkTier::kEbpf) return;
  const ProgramClock clock("on_event");
  const auto start = Clock::now();
  Ring ring(options, &cgroup);
  ring.Finish();
  const double seconds = SecondsSince(start);
  const ProgramCost cost = clock.Read();
  const MonitorWindow window = monitor.ReadWindow();
  const double events = static_cast<double>(cost.calls);
  lines.push_back({"all_reduce_mbps", window.network.bytes_sent * 8e-6 / seconds, "Mbit/s",
                   std::nan(""), "higher"});
  lines.push_back({"ebpf_events_per_s", events / seconds, "1/s", std::nan(""), "lower"});
  lines.push_back({"ebpf_ns_per_event",
                   static_cast<double>(cost.nanoseconds) / std::max(events, 1.0), "ns",
                   std::nan(""), "lower"});
  lines.push_back({"ebpf_share_of_one_core", static_cast<double>(cost.nanoseconds) * 1e-7 / seconds,
                   "%", 0.1, "lower"});
}

// Alternates rings with and without a monitor that is read after every window of iterations. Other
// work on the machine only adds time, so the fastest tenth tells most about the monitor.
void MeasureIterations(const Cgroup* cgroup, std::vector<Line>& lines) {
  constexpr int kRounds = 8;
  std::vector<double> with, without;
  for (int round = 0; round < 2 * kRounds; ++round) {
    const bool watched = round % 4 == 1 || round % 4 == 2;  // neither is always the later one
    std::optional<Monitor> monitor;
    if (watched) monitor.emplace(Watch(cgroup));
    Ring ring({}, cgroup);
    for (int window = 0; window < 5; ++window) {
      usleep(150000);  // also without, so that only the monitor differs
      if (watched) (void)monitor->ReadWindow();
    }
    const std::vector<double> seconds = ring.Finish();
    auto& all = watched ? with : without;
    all.insert(all.end(), seconds.begin() + 5, seconds.end());  // without the start
  }
  const double fast_with = Quantile(with, 0.1), fast_without = Quantile(without, 0.1);
  lines.push_back({"iteration_ms_without", fast_without * 1e3, "ms", std::nan(""), "lower"});
  lines.push_back({"iteration_ms_with", fast_with * 1e3, "ms", std::nan(""), "lower"});
  lines.push_back(
      {"iteration_with_over_without", fast_with / fast_without, "ratio", 1.02, "lower"});
}

void Print(const std::vector<Line>& lines, bool json) {
  std::string text = json ? "{\"bench\": \"monitor\", \"results\": [" : "";
  for (const Line& line : lines) {
    char target[64] = "null", out[256];
    if (std::isfinite(line.target)) std::snprintf(target, sizeof target, "%.6g", line.target);
    std::snprintf(out, sizeof out,
                  json ? "%s{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"target\": %s, "
                         "\"better\": \"%s\"}"
                       : "%s%-34s %12.4g %-7s target %8s, %s is better\n",
                  json && &line != &lines.front() ? ", " : "", line.name.c_str(), line.value,
                  line.unit, target, line.better);
    text += out;
  }
  std::printf("%s%s", text.c_str(), json ? "]}\n" : "");
}

int Main(bool json) {
  EnterFreshNetwork();
  auto made = Cgroup::Create("bench-" + std::to_string(getpid()));
  if (!made.ok()) std::fprintf(stderr, "monitor_bench: without eBPF: %s\n", made.error().c_str());
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    const Cgroup* cgroup = made.ok() ? &made.value() : nullptr;
    Require(cgroup == nullptr || cgroup->Enter(), "enter the cgroup");
    std::vector<Line> lines;
    if (cgroup != nullptr) MeasureProgram(*cgroup, lines);
    MeasureReads(cgroup, lines);
    MeasureIterations(cgroup, lines);
    Print(lines, json);
    std::fflush(stdout);
    _exit(0);
  }
  waitpid(child, &status, 0);
  if (made.ok()) (void)std::move(made).value().Remove();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace
}  // namespace dynamix::bench

int main(int argc, char** argv) {
  return dynamix::bench::Main(argc > 1 && std::strcmp(argv[1], "--json") == 0);
}
