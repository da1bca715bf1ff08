// Service: the arbitrator on the network. gRPC in front of any number of jobs (docs/protocol.md).
//
// Binds to loopback unless TLS is given. Everything from the network is checked before it is used;
// a failing job, disk or policy costs advice, never the service. Thread-safe. Options are checked
// at the start (InputError); an address that cannot be bound is an Error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "dynamix/core/policy_spec.h"
#include "dynamix/core/result.h"
#include "dynamix/rpc/security.h"
#include "dynamix/rpc/served_job.h"

namespace dynamix {

// One line of the log. `event` is a fixed word, the rest says what about.
struct LogEvent {
  enum class Level { kInfo, kWarning } level = Level::kInfo;
  std::string event;  // "job_opened", "worker_joined", "refused", "fallback", ...
  std::string job;
  int rank = -1;
  std::string detail;
};

struct ServiceOptions {
  std::string address = "127.0.0.1:0";  // port 0: a free one
  TlsFiles tls;                         // required unless the address is loopback
  std::string token;                    // callers must send it; empty: none wanted
  // Of this process; a restarted arbitrator's must be greater, or workers take it for a stale one.
  std::uint64_t epoch = 1;
  GateOptions gate;
  int valid_windows = 3;          // [1, 1000]
  int max_jobs = 64;              // [1, 100000]
  int max_workers = kMaxWorkers;  // of one job
  int max_connections = 8192;     // at once, [1, 1000000]; fewer when descriptors are scarce
  double job_memory_s = 600;      // an abandoned job is forgotten after so long
  int message_bytes = 64 << 10;   // largest message taken
  bool reflection = false;        // lets grpcurl and the like list the methods

  // What a new job starts with; the name and the number of workers are the job's.
  std::function<ArbitratorOptions(const std::string& job, int size)> job_options;
  // The policy SetPolicy names; may throw for a name it does not know. What it throws is logged, not
  // told: the caller learns nothing about this machine's files. Empty: SetPolicy is refused.
  std::function<PolicySpec(const std::string& name)> find_policy;
  // Called on a thread of its own, one record at a time; may be slow, may throw.
  std::function<void(const RoundRecord&)> on_round;
  // Called from any thread.
  std::function<void(const LogEvent&)> log;

  void Validate() const;
};

// What the service has done since it started.
struct ServiceCounts {
  std::int64_t reports = 0, rounds = 0, refused = 0, late = 0, records_dropped = 0;
  std::int64_t turned_away = 0;  // connections
  int jobs = 0, workers = 0;
};

// gRPC's and protobuf's own lines (failed handshakes, refused connections, bytes that are no text) go
// to `log` instead of stderr, which may block; nowhere when it is null. For the whole process; called
// from any thread.
void SendTransportLogTo(void (*log)(const std::string& text));

class Service {
 public:
  static Result<std::unique_ptr<Service>> Start(const ServiceOptions& options,
                                                const PolicySpec& policy);
  // Answers whoever waits and closes all connections.
  ~Service();

  int port() const;
  // For jobs to come and, from their next round on, for those that run.
  void SetPolicy(const PolicySpec& policy);
  // For connections to come. An Error when these cannot be used: those before stay in force.
  Status SetTls(const TlsFiles& tls);
  ServiceCounts counts() const;

 private:
  class Implementation;
  explicit Service(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace dynamix
