#include "dynamix/testbed/testbed.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "dynamix/job/timeline.h"

namespace dynamix {
namespace {

bool HasKind(const std::vector<TimedEvent>& events, EventKind kind) {
  return std::any_of(events.begin(), events.end(),
                     [&](const TimedEvent& event) { return event.kind == kind; });
}

bool AnyNode(const std::vector<Node>& nodes, bool (*holds)(const Node&)) {
  return std::any_of(nodes.begin(), nodes.end(), holds);
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

Testbed::Testbed(const TestbedOptions& options)
    : options_(options),
      cgroups_("testbed", static_cast<int>(options.nodes.size())),
      now_(options.nodes) {
  Result<JobClock> clock = JobClock::Create();
  if (clock) clock_.emplace(std::move(clock).value());
  MakeNetwork();
  MakeQuotas();
  NoteEvents();
  if (!cgroups_.error().empty())
    notes_.push_back("no cgroup per worker, so no eBPF metrics: " + cgroups_.error());
  StartKeeper();
}

bool Testbed::Enter(int rank) const noexcept {
  return cgroups_.Enter(rank) && (!network_ || network_->Enter(rank));
}

bool Testbed::Away(int rank) const {
  const double now = clock_ ? clock_->seconds() : 0;
  if (!options_.elastic || now <= 0) return false;
  return std::any_of(options_.events.begin(), options_.events.end(), [&](const TimedEvent& event) {
    return event.kind == EventKind::kLeave && event.worker == rank && event.begin_s <= now &&
           now < event.end_s;
  });
}

std::string Testbed::address() const {
  return network_ ? EmulatedNetwork::Address(0) : "127.0.0.1";
}
std::string Testbed::interface() const { return network_ ? EmulatedNetwork::kInterface : ""; }
std::string Testbed::clock_path() const { return clock_ ? clock_->path() : ""; }

void Testbed::MakeNetwork() {
  const std::string missing = "bandwidth, latency and loss of the cluster are not emulated: ";
  if (!options_.network) {
    notes_.push_back(missing + "plain processes over loopback were asked for");
    return;
  }
  if (geteuid() != 0) {
    notes_.push_back(missing + "network namespaces need root");
    return;
  }
  const bool lossy = AnyNode(options_.nodes, [](const Node& node) { return node.loss > 0; }) ||
                     HasKind(options_.events, EventKind::kLoss);
  Result<EmulatedNetwork> network = EmulatedNetwork::Create(options_.nodes, lossy);
  if (!network) {
    notes_.push_back(missing + network.error());
    return;
  }
  network_.emplace(std::move(network).value());
  notes_.push_back(std::to_string(options_.nodes.size()) +
                   " nodes in network namespaces on one bridge");
  if (AnyNode(options_.nodes,
              [](const Node& node) { return node.latency_ms < EmulatedNetwork::kLeastDelayMs; }))
    notes_.push_back("latencies under " + Number(EmulatedNetwork::kLeastDelayMs) +
                     " ms are not emulated: they are the kernel's own, some 0.05 ms");
  if (AnyNode(options_.nodes,
              [](const Node& node) { return node.bandwidth_mbps > EmulatedNetwork::kMostMbps; }))
    notes_.push_back("bandwidths over " + Number(EmulatedNetwork::kMostMbps) +
                     " Mbit/s are not emulated: such links are not limited");
}

double Testbed::QuotaOf(const Node& node) const {
  double speeds = 0;
  for (const Node& other : options_.nodes) speeds += other.speed;
  return options_.quota_cpus * node.speed / speeds;
}

void Testbed::MakeQuotas() {
  if (options_.quota_cpus <= 0) return;
  for (std::size_t i = 0; i < now_.size(); ++i) {
    if (Status set = cgroups_.LimitCpus(static_cast<int>(i), QuotaOf(now_[i])); !set) {
      notes_.push_back("device speeds are not emulated, CPU quotas were refused: " + set.error());
      options_.quota_cpus = 0;
      return;
    }
  }
  notes_.push_back("device speeds by CPU quota: overheads and jitter are not emulated");
}

void Testbed::NoteEvents() {
  if (HasKind(options_.events, EventKind::kLeave))
    notes_.push_back(
        options_.elastic
            ? "workers that leave are killed; those that come back are started then, and take "
              "their share when they have loaded their data"
            : "leave and join events are not emulated: this job keeps its ranks");
  if (network_) return;
  if (HasKind(options_.events, EventKind::kBandwidth) || HasKind(options_.events, EventKind::kLoss))
    notes_.push_back("bandwidth and loss events are not emulated");
}

void Testbed::StartKeeper() {
  std::vector<EventKind> kinds;
  if (network_) kinds = {EventKind::kBandwidth, EventKind::kLoss};
  if (options_.quota_cpus > 0) kinds.push_back(EventKind::kSlowdown);
  const std::vector<double> changes = ChangesOf(options_.events, kinds);
  if (changes.empty() || !clock_) return;
  keeper_ = std::make_unique<HelperProcess>([&] { KeepTime(changes); });
}

void Testbed::KeepTime(const std::vector<double>& changes) {
  for (const double change : changes) {
    while (clock_->seconds() < change) usleep(10000);
    ApplyChanges(clock_->seconds());
  }
}

void Testbed::ApplyChanges(double seconds) {
  for (std::size_t i = 0; i < now_.size(); ++i) {
    const int worker = static_cast<int>(i);
    const Node next = NodeAt(options_.nodes[i], options_.events, worker, seconds);
    Status done = Nothing{};
    if (network_ && next.bandwidth_mbps != now_[i].bandwidth_mbps)
      done = network_->SetBandwidth(worker, next.bandwidth_mbps);
    if (network_ && next.loss != now_[i].loss && done) done = network_->SetLoss(worker, next.loss);
    if (options_.quota_cpus > 0 && next.speed != now_[i].speed && done)
      done = cgroups_.LimitCpus(worker, QuotaOf(next));
    now_[i] = next;
    if (!done)
      std::fprintf(stderr, "testbed: an event at %.1f s did not happen on worker %d: %s\n", seconds,
                   worker, done.error().c_str());
  }
}

}  // namespace dynamix
