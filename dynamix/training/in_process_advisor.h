// InProcessAdvisor: the arbitrator's loop inside rank 0. Reports are gathered from all ranks after
// each window, rank 0 decides, every rank gets its batch. A round has an entry for every slot of the
// job; those of lost ranks are not active. A checkpoint holds the last batches and what rank 0
// remembers, however many rounds there were; in an elastic group every rank has it after each round,
// and one that becomes rank 0 goes on from there. One thread per object.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dynamix/core/advisor.h"
#include "dynamix/core/memory.h"
#include "dynamix/core/report_fields.h"
#include "dynamix/core/round.h"
#include "dynamix/training/worker_group.h"

namespace dynamix {

// The local batches for the next window, one per worker; called on rank 0 only.
using Decide = std::function<std::vector<int>(const Round&)>;
// The local batches to open with (Arbitrator::Open), from a round without reports; called on rank 0.
using OpenJob = std::function<std::vector<int>(const Round&)>;
// Told of each round and what was decided, on rank 0.
using OnRound = std::function<void(const Round&, const std::vector<int>& sizes)>;
// Names everything `Decide` remembers (Arbitrator::VisitMemory); empty: it remembers nothing.
using VisitDecider = std::function<void(Memory&)>;

class InProcessAdvisor : public Advisor {
 public:
  // `group` is borrowed: it belongs to the job and outlives its advisor.
  InProcessAdvisor(WorkerGroup& group, const JobSettings& settings, Decide decide,
                   OnRound on_round = {}, VisitDecider visit_decider = {}, OpenJob open = {});

  Result<std::optional<int>> Open(const RoundEntry& entry, double job_start) override;
  Status Submit(std::int64_t index, const RoundEntry& entry) override;
  Answer Poll() override;
  std::string Save() const override;
  Status Restore(const std::string& state) override;

 private:
  struct Told {
    Round round;
    std::vector<int> sizes;
  };

  std::vector<RoundEntry> EntriesBySlot(const std::vector<double>& by_rank);
  void Tell();
  Status ShareMemory();
  std::string Encode() const;

  WorkerGroup& group_;
  JobSettings settings_;
  Decide decide_;
  OnRound on_round_;
  VisitDecider visit_decider_;
  OpenJob open_;
  std::vector<int> sizes_;        // decided last, by slot; empty before the first round
  std::vector<RoundEntry> last_;  // by slot: what was last known of it
  // Rank 0: decided, but not yet shared with all. When a rank is lost just then, the others may have
  // gone on with it, or the round is decided anew.
  std::optional<Told> untold_;
  // What rank 0 remembers after the last round; `decide_` is not up to it when `behind_`.
  std::string memory_;
  bool behind_ = false;
};

}  // namespace dynamix
