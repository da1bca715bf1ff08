// ServedJob: one training job at the arbitrator: its gate, its decisions, and the answers that wait.
//
// Thread-safe. A reply is called exactly once, without the job's lock, on whatever thread closed
// the round (or in the call itself). Jobs share nothing, so one cannot touch another.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/arbitrator/round_record.h"
#include "dynamix/rpc/messages.h"
#include "dynamix/rpc/round_gate.h"

namespace dynamix {

// Why a worker gets no advice; the wire's status codes say the same.
enum class Refusal {
  kNone,
  kUnknown,     // join first
  kReplaced,    // another process has the rank: stop asking
  kSuperseded,  // the same worker asked again
  kTooFar,      // a window the other workers cannot have reached
  kShutDown,
};

// Called with the advice, or with a refusal and an advice without meaning.
using Reply = std::function<void(Refusal, const Advice&)>;

struct JobOptions {
  GateOptions gate;
  std::uint64_t epoch = 0;
  int valid_windows = 3;  // how long advice may be used
};

class ServedJob {
 public:
  // `on_record` is called under the job's lock, so it must be quick.
  ServedJob(std::string name, int size, const JobSettings& settings,
            std::unique_ptr<Arbitrator> arbitrator, const JobOptions& options, OnRecord on_record);

  const std::string& name() const { return name_; }
  int size() const { return size_; }

  // An Error when a newer process holds the rank, or the window cannot be.
  Status Join(const JoinMessage& message, SteadyTime now);
  void Leave(const WorkerName& worker, SteadyTime now);
  void Report(const ReportMessage& message, SteadyTime now, Reply reply);
  // Closes the open round when its deadline has passed or nobody is waited for any more.
  void Tick(SteadyTime now);
  void SetPolicy(const PolicySpec& policy);
  // Answers everybody who waits, and who still comes, with `refusal`.
  void End(Refusal refusal);

  // A worker that says it belongs to `run` does not belong here.
  bool IsOtherRun(std::uint64_t run) const;
  int LiveCount(SteadyTime now) const;
  // When anybody last spoke.
  SteadyTime seen() const;

 private:
  struct Answered {
    Reply reply;
    Refusal refusal = Refusal::kNone;
    Advice advice;
  };
  using Answers = std::vector<Answered>;
  // A worker that joins anew may take the rounds back before the window that another one asked about.
  struct Waiting {
    std::int64_t window = 0;  // asked about
    Reply reply;
  };

  // These hold the lock and add what is to be said after it is released.
  void Enter(const ReportMessage& message, SteadyTime now, Reply reply, Answers& answers);
  void CloseRound(SteadyTime now, Answers& answers);
  // Never throws: what the policy, the guard or the learner throw costs advice, not the service.
  Decision Decide(const Round& round);
  Advice AdviceFor(int rank) const;

  const std::string name_;
  const int size_;
  const JobOptions options_;
  const OnRecord on_record_;

  mutable std::mutex mutex_;
  JobSettings settings_;
  std::uint64_t run_ = 0;  // 0: no worker said
  SteadyTime seen_;
  RoundGate gate_;
  std::unique_ptr<Arbitrator> arbitrator_;
  std::map<int, Waiting> waiting_;  // by rank
  Advice last_;                     // of the round closed last, without a batch
  std::vector<int> last_sizes_;     // empty before the first round
  std::vector<bool> last_active_;
  double seconds_ = 0;
  int partial_rounds_ = 0;
  Refusal ended_ = Refusal::kNone;
};

}  // namespace dynamix
