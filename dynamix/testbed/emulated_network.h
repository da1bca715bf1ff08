// The network of an emulated cluster: a namespace per node, a cable from each to a bridge in one
// more namespace, and on each cable the node's bandwidth, loss and latency.
//
//   bandwidth   token buckets at both ends of the cable: what the node sends and what it gets
//   loss        of TCP segments at the node's ingress, so that senders see it as retransmissions
//   latency     of what the node sends, one way; from kLeastDelayMs on, by a relay of frames
// Congestion control is cubic where the kernel has it: the cluster model's loss formula is of a
// sender that heeds loss.
//
// Nothing on the machine's own network changes and nothing has a name, so any number of networks
// live side by side, and all of one goes with the processes that use it. Needs root; what the
// kernel refuses is an Error. One thread at a time per object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/host/delay_relay.h"
#include "dynamix/host/helper_process.h"
#include "dynamix/host/network_namespace.h"
#include "dynamix/job/scenario.h"

namespace dynamix {

class EmulatedNetwork {
 public:
  static constexpr double kLeastDelayMs = 1;  // shorter latencies stay those of the kernel
  static constexpr double kMostMbps = 10000;  // faster cables are not limited
  static constexpr const char* kInterface = "wire";

  // `lossy`: some node loses segments now or later.
  static Result<EmulatedNetwork> Create(const std::vector<Node>& nodes, bool lossy);

  // Moves the calling process to the node; may be called between fork and exec.
  bool Enter(int node) const noexcept { return hosts_[node].Enter(); }
  Status SetBandwidth(int node, double mbps) const;
  Status SetLoss(int node, double share) const;  // [0, 1)

  const NetworkNamespace& host(int node) const { return hosts_[node]; }
  static std::string Address(int node);

 private:
  explicit EmulatedNetwork(NetworkNamespace bridge) : bridge_(std::move(bridge)) {}
  Status AddNode(int index, const Node& node, bool lossy);
  Status Connect(int index, const Node& node);

  NetworkNamespace bridge_;
  std::vector<NetworkNamespace> hosts_;
  std::vector<DelayedLink> delayed_;
  std::unique_ptr<HelperProcess> relay_;
};

}  // namespace dynamix
