// Testbed: the cluster of a scenario on one machine, for real processes.
//
//   Testbed testbed(options);                        // as much as the privileges allow
//   for (auto& sentence : testbed.notes()) say(sentence);
//   launch.enter = [&](int rank) { return testbed.Enter(rank); };   // in each child
//   Launch(launch);
//                                                    // gone with the object
// As root: a network namespace per node with its bandwidth, loss and latency (emulated_network.h)
// and a cgroup per rank. Otherwise plain processes. Device speed is the ranks' own pacing (pace.h),
// or a CPU quota. Bandwidth and loss events happen at their times of the job's clock, which a rank
// sets; slowdowns in the ranks' pace, or in their quotas. Of an elastic job, ranks leave and come
// back: Away says who, for the launcher to follow.
//
// notes() tells what is emulated and what is not. A part that fails later is said once on stderr,
// and the job goes on. After kill -9 only cgroups stay, until the next testbed or `dynamix testbed
// clean`. One thread; forks helper processes, which die with it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dynamix/host/helper_process.h"
#include "dynamix/host/job_clock.h"
#include "dynamix/host/worker_cgroups.h"
#include "dynamix/job/scenario.h"
#include "dynamix/testbed/emulated_network.h"

namespace dynamix {

struct TestbedOptions {
  std::vector<Node> nodes;  // one per rank
  std::vector<TimedEvent> events;
  bool network = true;  // emulate it, when the privileges allow
  // Speed by CPU quota instead of the ranks' pace: the nodes share so many CPUs in proportion to
  // their speed. 0: pace.
  double quota_cpus = 0;
  bool elastic = false;  // the job goes on without ranks that leave, and takes them in again
};

class Testbed {
 public:
  explicit Testbed(const TestbedOptions& options);
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  // Moves the calling process to the rank's node; may be called between fork and exec.
  bool Enter(int rank) const noexcept;
  // Whether an event keeps the rank away just now. Nobody is before the job's clock runs: a rank that
  // joins late starts with the others, and leaves at once.
  bool Away(int rank) const;
  std::string address() const;    // of rank 0, for the others
  std::string interface() const;  // of the exchange; empty: loopback
  std::string clock_path() const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void MakeNetwork();
  void MakeQuotas();
  void NoteEvents();
  double QuotaOf(const Node& node) const;
  void StartKeeper();
  void KeepTime(const std::vector<double>& changes);
  void ApplyChanges(double seconds);

  TestbedOptions options_;
  std::vector<std::string> notes_;
  std::optional<JobClock> clock_;
  std::optional<EmulatedNetwork> network_;
  WorkerCgroups cgroups_;
  std::vector<Node> now_;  // the keeper's: what is set
  std::unique_ptr<HelperProcess> keeper_;
};

}  // namespace dynamix
