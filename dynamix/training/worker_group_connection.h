// What a WorkerGroup holds of c10d and Gloo. A private header of this room.
#pragma once

#include <gloo/context.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>
#include <vector>

#include "dynamix/host/own_sockets.h"
#include "dynamix/training/worker_group.h"

namespace dynamix {

class Rendezvous;

inline std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

inline bool IsLoopback(const std::string& address) {
  return address == "localhost" || address.starts_with("127.") || address == "::1";
}

// ProcessGroupGloo whose collectives can be made to fail. By itself, a collective that waits for a
// living peer, which waits for a dead one, would wait for the whole timeout.
class BreakableGroup : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;

  void SetTimeout(std::chrono::milliseconds timeout) {
    for (const auto& context : contexts_) context->setTimeout(timeout);
  }
  // Those that were opened while the group was made. Another thread's may be among them; it is
  // used to connections that end.
  void SetSockets(std::vector<OwnSocket> sockets) { sockets_ = std::move(sockets); }
  // Shuts the connections down: collectives under way and to come fail, here and at the peers.
  void Break() {
    for (const OwnSocket& socket : sockets_) ShutDown(socket);
  }

 private:
  std::vector<OwnSocket> sockets_;
};

struct WorkerGroup::Connection {
  Connection(const WorkerGroupOptions& given, bool on_loopback)
      : options(given), loopback(on_loopback) {}

  c10::intrusive_ptr<BreakableGroup> Join(const c10::intrusive_ptr<c10d::Store>& at, int rank,
                                          int size, double timeout_s = 0) const;
  // Called from the door's thread too.
  void Break() {
    const std::lock_guard lock(mutex);
    if (group) group->Break();
  }

  // Whether the members' file names a later team than this rank knows, and not this rank: then
  // `doors` are theirs. A rank that was stopped for long may find that all it knew have ended, though
  // the job goes on with ranks that came later.
  bool LeftOut();

  const WorkerGroupOptions options;
  const bool loopback;
  std::mutex mutex;                          // of `group` as a pointer
  c10::intrusive_ptr<c10d::Store> store;     // of the first group
  c10::intrusive_ptr<BreakableGroup> group;  // null: this rank is alone
  // Elastic groups only.
  std::string members_file;
  std::vector<std::string> doors;          // of those to join; empty once taken in
  std::unique_ptr<Rendezvous> rendezvous;  // last: its door breaks the group
};

}  // namespace dynamix
