// The ranks of a job, connected: c10d's ProcessGroupGloo. They find each other in a file (FileStore)
// when the launcher gave one, else at rank 0's port (TCPStore), which only packets of the job's
// interface reach: the store itself believes whoever connects.
//
// Every collective has a timeout and ends with an Error when a peer is gone, stopped or too slow;
// the Error names the ranks that did not notice, which are the ones to look at. After an Error the
// group is of no more use and the job ends (resume it from its checkpoint). All ranks make the same
// calls in the same order. One thread per object. libtorch's types are only declared here.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/host/rank_place.h"

namespace c10d {
class ProcessGroup;
}

namespace dynamix {

struct WorkerGroupOptions {
  double timeout_s = 60;  // of connecting and of every collective, (0, 86400]
  int threads = 4;        // collectives under way at once, [1, 64]
  // Network interface of the exchange; empty: loopback when rank 0 is on it, else the host's own.
  std::string interface;
};

class WorkerGroup {
 public:
  // One rank without peers: every collective is the identity.
  WorkerGroup();
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // Returns when all ranks are there. Throws InputError for options out of range.
  static Result<std::unique_ptr<WorkerGroup>> Connect(const RankPlace& place,
                                                      const WorkerGroupOptions& options);
  // `size` ranks in this process, one per thread of the caller, over loopback.
  static std::vector<std::unique_ptr<WorkerGroup>> ConnectThreads(
      int size, const WorkerGroupOptions& options);

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Sums over ranks, in place.
  Status AllReduce(std::span<double> values);
  // `all` has room for size() times own.size() numbers and gets the ranks' in order.
  Status AllGather(std::span<const double> own, std::span<double> all);
  // Rank 0's values, to all.
  Status Broadcast(std::span<double> values);
  Status Broadcast(std::span<float> values);

  // Null for one rank alone.
  c10d::ProcessGroup* process_group() const;

  // What to tell the user when a collective threw `what`. Takes up to half a timeout, 5 s at most, to
  // learn which ranks are silent.
  Error PeerLost(const std::string& what) const;

 private:
  struct Connection;
  std::vector<int> FindSilent() const;
  WorkerGroup(int rank, int size, std::unique_ptr<Connection> connection);

  int rank_ = 0, size_ = 1;
  std::unique_ptr<Connection> connection_;
};

}  // namespace dynamix
