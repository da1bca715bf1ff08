// InProcessAdvisor: the arbitrator's loop inside rank 0. Reports are gathered from all ranks after
// each window, rank 0 decides, every rank gets its batch. A checkpoint holds the last batches and
// what rank 0 remembers, however many rounds there were. One thread per object.
#pragma once

#include <functional>
#include <vector>

#include "dynamix/core/advisor.h"
#include "dynamix/core/memory.h"
#include "dynamix/core/report_fields.h"
#include "dynamix/core/round.h"
#include "dynamix/training/worker_group.h"

namespace dynamix {

// The local batches for the next window, one per worker; called on rank 0 only.
using Decide = std::function<std::vector<int>(const Round&)>;
// Told of each round and what was decided, on rank 0.
using OnRound = std::function<void(const Round&, const std::vector<int>& sizes)>;
// Names everything `Decide` remembers (Arbitrator::VisitMemory); empty: it remembers nothing.
using VisitDecider = std::function<void(Memory&)>;

class InProcessAdvisor : public Advisor {
 public:
  // `group` is borrowed: it belongs to the job and outlives its advisor.
  InProcessAdvisor(WorkerGroup& group, const JobSettings& settings, Decide decide,
                   OnRound on_round = {}, VisitDecider visit_decider = {});

  Status Submit(std::int64_t index, const RoundEntry& entry) override;
  Answer Poll() override;
  std::string Save() const override;
  Status Restore(const std::string& state) override;

 private:
  WorkerGroup& group_;
  JobSettings settings_;
  Decide decide_;
  OnRound on_round_;
  VisitDecider visit_decider_;
  std::vector<int> sizes_;  // decided last; empty before the first round
};

}  // namespace dynamix
