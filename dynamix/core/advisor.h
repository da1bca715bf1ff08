// Advisor: where a worker's next batch size comes from. Two implementations: in this process
// (training/in_process_advisor.h) and the RPC client of an arbitrator (rpc/remote_advisor.h).
//
// The worker hands over its side of the round after every window and asks for the answer in every
// iteration. Advice is advice: the worker clamps it to its bounds, all ranks take theirs in the
// same iteration, and without an answer the worker keeps its batch. One thread per object.
#pragma once

#include <optional>
#include <string>

#include "dynamix/core/result.h"
#include "dynamix/core/round.h"

namespace dynamix {

// The answer to the last window.
struct Answer {
  // False while an answer may still come: the ranks switch when all are ready. An advisor stops
  // hoping after a while and is then ready without a batch.
  bool ready = true;
  std::optional<int> batch;  // advised; empty: keep the batch
};

class Advisor {
 public:
  virtual ~Advisor() = default;
  // The batch to begin a new job with, when there is a better one than its start; all ranks ask before
  // their first iteration. `entry` has no report yet; `job_start` is the sum of all start batches. Waits for the job's own ranks, and for an
  // arbitrator a moment; an Error says that the ranks are lost.
  virtual Result<std::optional<int>> Open(const RoundEntry& entry, double job_start) = 0;
  // `entry` is this worker's part of round `index`, with its report. May wait for the job's own
  // ranks, which all submit in the same iteration; never for anybody else. An Error says that the
  // ranks are lost.
  virtual Status Submit(std::int64_t index, const RoundEntry& entry) = 0;
  virtual Answer Poll() = 0;

  // Everything the advice to come depends on, for checkpoints; empty when that lives elsewhere.
  virtual std::string Save() const = 0;
  // All ranks call it with the same state. Throws InputError when it is not what Save returned on
  // rank 0; an Error says that the ranks are lost.
  virtual Status Restore(const std::string& state) = 0;
};

}  // namespace dynamix
