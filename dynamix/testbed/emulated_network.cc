#include "dynamix/testbed/emulated_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace dynamix {
namespace {

std::string Port(int index) { return "port" + std::to_string(index); }

// Deep enough to hold what a window of TCP sends at once, shallow against an iteration.
std::string TokenBucket(const std::string& verb, const std::string& device, double mbps) {
  const double burst_bytes = std::max(16000.0, mbps * 1e6 / 8 * 0.001);
  return "tc qdisc " + verb + " dev " + device + " root tbf rate " +
         std::to_string(std::llround(mbps * 1000)) + "kbit burst " +
         std::to_string(std::llround(burst_bytes)) + " latency 100ms";
}

}  // namespace

std::string EmulatedNetwork::Address(int node) {
  return "10.77." + std::to_string((node + 1) / 256) + "." + std::to_string((node + 1) % 256);
}

Result<EmulatedNetwork> EmulatedNetwork::Create(const std::vector<Node>& nodes, bool lossy) {
  Result<NetworkNamespace> bridge = NetworkNamespace::Create();
  if (!bridge) return Error{bridge.error()};
  EmulatedNetwork network(std::move(bridge).value());
  if (Status made = network.bridge_.Run("ip link add bridge type bridge && ip link set bridge up");
      !made)
    return Error{made.error()};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (Status added = network.AddNode(static_cast<int>(i), nodes[i], lossy); !added)
      return Error{added.error()};
  if (!network.delayed_.empty())
    network.relay_ = std::make_unique<HelperProcess>([&] { RelayFrames(network.delayed_); });
  return network;
}

Status EmulatedNetwork::AddNode(int index, const Node& node, bool lossy) {
  Result<NetworkNamespace> host = NetworkNamespace::Create();
  if (!host) return Error{host.error()};
  hosts_.push_back(std::move(host).value());
  if (Status connected = Connect(index, node); !connected) return connected;
  const std::string port = Port(index);
  if (Status up = bridge_.Run("ip link set " + port + " master bridge up txqueuelen 10000"); !up)
    return up;
  const std::string own = "10.77.0.0/16 dev wire src " + Address(index);
  std::string setup = "ip addr add " + Address(index) +
                      "/16 dev wire && ip link set wire up txqueuelen 10000 && "
                      "{ ip route replace " +
                      own + " congctl cubic || ip route replace " + own + "; }";
  // Else one loss is that of a whole super-packet of up to 64 KB.
  if (lossy) setup += " && ip link set wire gso_max_segs 1";
  if (Status set = hosts_[index].Run(setup); !set) return set;
  if (node.bandwidth_mbps <= kMostMbps) {
    const double mbps = node.bandwidth_mbps;
    if (Status in = bridge_.Run(TokenBucket("add", port, mbps)); !in) return in;
    if (Status out = hosts_[index].Run(TokenBucket("add", kInterface, mbps)); !out) return out;
  }
  return node.loss > 0 ? SetLoss(index, node.loss) : Status(Nothing{});
}

Status EmulatedNetwork::Connect(int index, const Node& node) {
  if (node.latency_ms < kLeastDelayMs) {
    return bridge_.Run("ip link add " + Port(index) + " type veth peer name wire netns " +
                       hosts_[index].path());
  }
  Result<FileDescriptor> near = OpenTap(hosts_[index], kInterface);
  if (!near) return Error{near.error()};
  Result<FileDescriptor> far = OpenTap(bridge_, Port(index));
  if (!far) return Error{far.error()};
  delayed_.push_back({std::move(near).value(), std::move(far).value(),
                      std::chrono::microseconds(std::llround(node.latency_ms * 1000)),
                      std::chrono::microseconds(0)});
  return Nothing{};
}

Status EmulatedNetwork::SetBandwidth(int node, double mbps) const {
  const double limited = std::min(mbps, kMostMbps);
  if (Status in = bridge_.Run(TokenBucket("replace", Port(node), limited)); !in) return in;
  return hosts_[node].Run(TokenBucket("replace", kInterface, limited));
}

Status EmulatedNetwork::SetLoss(int node, double share) const {
  const std::string rule =
      share > 0 ? "$tables -A INPUT -i wire -p tcp -m statistic --mode random --probability " +
                      std::to_string(share) + " -j DROP"
                : "true";
  return hosts_[node].Run(
      "for tables in iptables iptables-legacy; do $tables -F INPUT 2>/dev/null && " + rule +
      " 2>/dev/null && exit; done; echo no iptables with the statistic module >&2; exit 1");
}

}  // namespace dynamix
