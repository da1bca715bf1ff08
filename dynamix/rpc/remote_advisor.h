// RemoteAdvisor: the worker's side of an arbitrator. Advice over the network that cannot harm.
//
// Submit puts a report into a mailbox and Poll looks whether the answer came: neither ever waits,
// resolves a name or touches a socket. Open, before the first iteration, waits `opening_s` at most. One background thread joins, reports, renews the lease and
// tries again: deadlines on every call, jittered backoff, and a circuit breaker that stops asking
// for a while after several failures in a row. Several addresses are tried in turn. An arbitrator
// whose epoch is lower than one heard before is stale and not believed.
//
// Advice is clamped to the bounds, may change the batch by at most `max_factor` per window (less
// when it swings to and fro), and is dropped when it comes too late. Whatever the network or the
// arbitrator do, the worst that happens is that the batch stays. Submit and Poll from one thread.
// Options are checked at construction (InputError); nothing fails after that.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dynamix/core/advisor.h"
#include "dynamix/rpc/messages.h"
#include "dynamix/rpc/security.h"

namespace dynamix {

// One call to the arbitrator, or how it ended.
struct AdvisorEvent {
  enum class Kind { kJoin, kWelcome, kReport, kAdvice, kFailure };
  Kind kind;
  std::chrono::steady_clock::time_point time;
  std::uint64_t incarnation = 0;
  std::uint64_t epoch = 0;   // the highest heard before, or the one in the answer
  std::int64_t window = -1;  // of a report or its advice
  std::optional<int> batch;  // in force (report), advised (advice)
  BatchBounds bounds = {};   // report
  int valid_windows = 0;     // advice
};

struct RemoteAdvisorOptions {
  std::string addresses;  // HOST:PORT or unix:PATH, several with commas: tried in this order
  std::string job = "job";
  int rank = 0;
  int size = 1;
  JobSettings settings;
  TlsFiles tls;              // empty: plain, for loopback and trusted tunnels
  std::string tls_name;      // name in the arbitrator's certificate; empty: the address's host
  std::string token;         // sent with every call when given
  double timeout_s = 3;      // of one call, [0.01, 600]
  double patience_s = 3;     // after a window, until the worker goes on without advice, [0, 600]
  double opening_s = 1;      // before the first iteration, for where to begin, [0, 600]
  double max_factor = 4;     // of the batch per window, [1, 1e6]
  int breaker_failures = 5;  // in a row, until it stops asking, [1, 1000]
  double breaker_s = 5;  // how long it stops the first time, [0.01, 600]; doubles up to 12 times
  std::uint64_t incarnation = 0;  // 0: from the clock
  // Of this training, the same on all its ranks: another run of the same name is then told apart
  // while this one lives. 0: unknown. Save and Restore carry it over a resume.
  std::uint64_t run = 0;
  // Told of what changes (connected, lost, stale, fallback); from the background thread.
  std::function<void(const std::string&)> log;
  // Told of every call and its end, a little later, from the background thread: for histories of
  // what was said and heard.
  std::function<void(const AdvisorEvent&)> trace;

  void Validate() const;
  std::vector<std::string> AddressList() const;
};

// For tests, logs and metrics.
struct RemoteAdvisorCounts {
  std::int64_t submitted = 0;  // windows
  std::int64_t advised = 0;    // answered in time, with a batch or without
  std::int64_t failed = 0;     // calls
  std::int64_t dropped = 0;    // answers too late, stale or of a stale arbitrator
  std::int64_t joined = 0;
  bool breaker_open = false;
  bool fallback = false;  // the arbitrator's guard is in force
  std::uint64_t epoch = 0;
};

class RemoteAdvisor : public Advisor {
 public:
  explicit RemoteAdvisor(const RemoteAdvisorOptions& options);
  // Says goodbye, for at most 0.2 s.
  ~RemoteAdvisor() override;

  // Never fail.
  Result<std::optional<int>> Open(const RoundEntry& entry, double job_start) override;
  Status Submit(std::int64_t index, const RoundEntry& entry) override;
  Answer Poll() override;
  std::string Save() const override;
  Status Restore(const std::string& saved) override;

  RemoteAdvisorCounts counts() const;

 private:
  class AdvisorThread;
  std::unique_ptr<AdvisorThread> thread_;
};

// Keeps advice within `max_factor` of the batch; each swing in the other direction in a row takes
// the root of what is allowed. A value type, pure.
class StepLimit {
 public:
  explicit StepLimit(double max_factor) : max_factor_(max_factor) {}
  int Apply(int advised, int batch, const BatchBounds& bounds);

 private:
  double max_factor_;
  int direction_ = 0, swings_ = 0;
};

}  // namespace dynamix
