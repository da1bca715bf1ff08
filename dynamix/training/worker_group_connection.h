// What a WorkerGroup holds of c10d and Gloo. A private header of this room.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dynamix/host/own_address.h"
#include "dynamix/training/breakable_group.h"
#include "dynamix/training/worker_group.h"

namespace dynamix {

class Rendezvous;

inline std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

inline bool IsLoopback(const std::string& address) {
  return address == "localhost" || address.starts_with("127.") || address == "::1";
}

struct WorkerGroup::Connection {
  // `first_rank` is where it listens.
  Connection(const WorkerGroupOptions& given, const std::string& first_rank)
      : options(given),
        address(IsLoopback(first_rank) ? "127.0.0.1" : OwnAddress(first_rank, given.interface)) {}

  c10::intrusive_ptr<BreakableGroup> Join(const c10::intrusive_ptr<c10d::Store>& at, int rank,
                                          int size, double timeout_s = 0) const;
  // Called from the door's thread too.
  void Break() {
    const std::lock_guard lock(mutex);
    if (group) group->Break();
  }
  // The group is of no more use. Gloo may still be at a collective, which nobody waits for but the
  // end of the job.
  void Retire();

  // Whether the members' file names a later team than this rank knows, and not this rank: then
  // `doors` are theirs. A rank that was stopped for long may find that all it knew have ended, though
  // the job goes on with ranks that came later.
  bool LeftOut();

  const WorkerGroupOptions options;
  const std::string address;  // by which the others reach this rank; empty when it cannot be told
  std::mutex mutex;           // of `group` as a pointer
  c10::intrusive_ptr<c10d::Store> store;     // of the first group
  c10::intrusive_ptr<BreakableGroup> group;  // null: this rank is alone
  std::vector<std::future<void>> retired;    // until their destructors are done
  // Elastic groups only.
  std::string members_file;
  std::vector<std::string> doors;          // of those to join; empty once taken in
  std::unique_ptr<Rendezvous> rendezvous;  // last: its door breaks the group
};

}  // namespace dynamix
