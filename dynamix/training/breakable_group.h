// ProcessGroupGloo whose collectives end when they must.
//
// Gloo by itself can wait for the whole timeout when a rank is lost: for a living peer that waits
// for the dead one, or on a connection that ended in the middle of a message (the buffer of such a
// message is in none of the lists that hear of the error). So nobody waits for Gloo here, but for
// Completed(), which fails with the collective or with the group, whatever is first. The group is
// broken by its owner, or by itself when `patience_s` after the loss of a connection a collective
// still waits. Gloo may then be at it until its timeout: the tensors of a collective belong to it.
//
// Thread-safe. The destructor waits for Gloo. A private header of this room: it includes libtorch.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "dynamix/host/own_sockets.h"

namespace dynamix {

class BreakableGroup : public c10d::ProcessGroupGloo {
 public:
  using Future = c10::intrusive_ptr<c10::ivalue::Future>;

  // `patience_s` 0: only its owner breaks it.
  BreakableGroup(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                 c10::intrusive_ptr<Options> options, double patience_s);
  ~BreakableGroup() override;

  void SetTimeout(std::chrono::milliseconds timeout);
  // Of a collective of this group.
  Future Completed(const c10::intrusive_ptr<c10d::Work>& work);
  // Shuts the connections down: collectives under way and to come fail, here and at the peers.
  void Break();

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting;

  void FindSockets();
  void Watch(double patience_s);
  bool Lost() const;

  std::vector<OwnSocket> sockets_;  // one per peer
  std::mutex mutex_;
  std::condition_variable closing_;
  bool closed_ = false, broken_ = false;
  std::list<std::shared_ptr<Waiting>> waiting_;
  std::thread watcher_;
};

}  // namespace dynamix
