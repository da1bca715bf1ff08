// RoundGate: gathers the reports of one job's workers into rounds.
//
// A round opens with the first report of its window and closes when everybody it waits for has
// reported or its deadline has passed. It waits for workers whose lease runs, and in the beginning
// for those that have not joined yet. Who is late is masked (active, without a report); whose lease
// has ended, who left and who never came is inactive. A report of a later window closes the open
// round at once: its sender has moved on, and the ranks of a job move together. For the same reason a
// window far ahead of the other live workers is refused: followed, it would leave them behind for
// ever. Rounds only go forward, except that a worker that joins anew (restart from a checkpoint)
// takes them back to the window it starts from. The time is an argument and only ever compared, so
// a jump of the machine's clock means nothing. Not thread-safe; never fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "dynamix/core/result.h"
#include "dynamix/rpc/messages.h"

namespace dynamix {

using SteadyTime = std::chrono::steady_clock::time_point;

struct GateOptions {
  double lease_s = 10;          // [0.1, 3600]
  double round_deadline_s = 1;  // [0.001, 600], less than the lease

  void Validate() const;
};

class RoundGate {
 public:
  RoundGate(int size, const GateOptions& options);

  // An Error when a newer process holds the rank, or the window cannot be.
  Status Join(int rank, std::uint64_t incarnation, std::int64_t next_window, SteadyTime now);
  // The worker is gone for good; the open round no longer waits for it.
  void Leave(int rank, std::uint64_t incarnation);

  enum class Arrival {
    kWaits,     // in the open round
    kAnswered,  // of the round that closed last: a replay, or late
    kStale,     // older than that
    kUnknown,   // has not joined, or has left
    kReplaced,  // another process has its rank
    kTooFar,    // a window the other workers cannot have reached
    kEndsOpen,  // of a later round than the open one: Close that, then Add again
  };
  Arrival Add(int rank, std::uint64_t incarnation, std::int64_t window, const RoundEntry& entry,
              SteadyTime now);

  // True when the open round is to be closed.
  bool Complete(SteadyTime now) const;
  // Closes the open round, complete or not. `settings` fills what reports do not say.
  Round Close(const JobSettings& settings, SteadyTime now);

  int size() const { return static_cast<int>(workers_.size()); }
  bool IsLive(int rank, SteadyTime now) const;
  int LiveCount(SteadyTime now) const;
  // Every worker of the job has reported at least once.
  bool AllHeard() const;

 private:
  struct Slot {
    bool expected = true;  // not joined yet, and no round has missed it
    bool joined = false;
    std::uint64_t incarnation = 0;
    std::int64_t next_window = 0;  // as it said when it joined, or after its last report
    SteadyTime lease;
    bool reported = false;  // in the open round
    bool heard = false;     // in any round
    RoundEntry entry;       // the last one heard
  };

  // Ahead of every other live worker by more windows than a lease can hold.
  bool IsTooFar(int rank, std::int64_t window, SteadyTime now) const;

  GateOptions options_;
  std::vector<Slot> workers_;
  std::optional<std::int64_t> open_;
  SteadyTime deadline_;
  std::int64_t closed_ = -1;  // the last window closed
};

}  // namespace dynamix
