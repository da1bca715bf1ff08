// The ranks of a job, connected: c10d's ProcessGroupGloo. They find each other in a file (FileStore)
// when the launcher gave one, else at rank 0's port (TCPStore), which only packets of the job's
// interface reach: the store itself believes whoever connects.
//
// Every collective has a timeout and ends with an Error when a peer is gone, stopped or too slow;
// the Error names the ranks that did not notice, which are the ones to look at. After an Error the
// group is of no more use and the job ends (resume it from its checkpoint). Not so in an elastic
// group: there the survivors call Reform and go on as a smaller group, with other ranks (team.h).
// A rank's slot never changes: it says which worker of the job it is.
// All ranks make the same calls in the same order. One thread per object. libtorch's types are only
// declared here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/host/rank_place.h"

namespace dynamix {

class BreakableGroup;

struct WorkerGroupOptions {
  double timeout_s = 60;  // of connecting and of every collective, (0, 86400]
  int threads = 4;        // collectives under way at once, [1, 64]
  // Network interface of the exchange; empty: loopback when rank 0 is on it, else the host's own.
  std::string interface;
  // Lost ranks make the group smaller, and ranks that come later make it larger.
  bool elastic = false;
  int least_ranks = 1;  // of an elastic group, [1, its size at the start]
  int most_ranks = 0;   // of an elastic group, [its size at the start, 4096]; 0: that size
  // "name = value", alike on all ranks of an elastic group: one that comes later with another value is
  // refused before it disturbs the others.
  std::vector<std::string> settings;
  // A file in which ranks that come later find the others; empty: beside the place's store.
  std::string members;
};

class WorkerGroup {
 public:
  // One rank without peers: every collective is the identity.
  WorkerGroup();
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Returns when all ranks are there. Throws InputError for options out of range. A rank that comes
  // later (one that was started again after all had met, or RankPlace::kAnyFree) is no member before
  // its first Reform.
  static Result<std::unique_ptr<WorkerGroup>> Connect(const RankPlace& place,
                                                      const WorkerGroupOptions& options);
  // `size` ranks in this process, one per thread of the caller, over loopback.
  static std::vector<std::unique_ptr<WorkerGroup>> ConnectThreads(
      int size, const WorkerGroupOptions& options);

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Which worker of the job this is: its rank when the job started, or a number of its own. `slots`
  // is how many there can be.
  int slot() const { return slot_; }
  int slots() const { return slots_; }
  const std::vector<int>& members() const { return members_; }  // slot of each rank

  // Sums over ranks, in place.
  Status AllReduce(std::span<double> values);
  // `all` has room for size() times own.size() numbers and gets the ranks' in order.
  Status AllGather(std::span<const double> own, std::span<double> all);
  // One rank's values, to all.
  Status Broadcast(std::span<double> values, int from = 0);
  Status Broadcast(std::span<float> values, int from = 0);

  bool elastic() const;
  bool lost() const { return lost_; }         // a collective failed in this group
  bool joining() const;                       // this rank has not been taken in yet
  bool taken_in() const;                      // this group took this rank in, or back in
  bool JoinWaiting() const;                   // another one wants to be taken in
  std::uint64_t job() const { return job_; }  // one number per elastic job, the same on all ranks
  // Meets the survivors and becomes the next group, also of one rank alone. `take_joiners`: with
  // those who wait. An Error: no majority of the ranks, or fewer than the least.
  Status Reform(bool take_joiners = false);

  // Null for one rank alone.
  BreakableGroup* process_group() const;

  // What to tell the user when a collective threw `what`. Takes up to half a timeout, 5 s at most, to
  // learn which ranks are silent; no time in an elastic group, which is then lost.
  Error PeerLost(const std::string& what);

 private:
  struct Connection;
  std::vector<int> FindSilent() const;
  template <typename Run>
  Status Collect(const Run& run);
  template <typename Number>
  Status BroadcastFrom(std::span<Number> values, int from);
  WorkerGroup(int rank, int size, std::unique_ptr<Connection> connection);
  void OpenDoor(std::uint64_t key, int started);
  Status Begin(const RankPlace& place);
  static bool ComesLater(const RankPlace& place, const WorkerGroupOptions& options);
  static void ForgetMembers(const RankPlace& place, const WorkerGroupOptions& options);
  static std::unique_ptr<WorkerGroup> JoinLater(RankPlace place, const WorkerGroupOptions& options);
  bool Form();
  void TellWhereMembersAre() const;

  int rank_ = 0, size_ = 1, slot_ = 0, slots_ = 1;
  std::vector<int> members_ = {0};
  bool lost_ = false;
  std::uint64_t job_ = 0;
  std::unique_ptr<Connection> connection_;  // null: one rank alone, for good
};

}  // namespace dynamix
