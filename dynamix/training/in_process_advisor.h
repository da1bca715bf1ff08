// InProcessAdvisor: the arbitrator's loop inside rank 0. Reports are gathered from all ranks after
// each window, rank 0 decides, every rank gets its batch.
//
// `Decide` must be a function of the rounds it has seen since it was made (Arbitrator::Step is): a
// checkpoint holds the rounds, and restoring replays them. One thread per object.
#pragma once

#include <functional>
#include <vector>

#include "dynamix/core/advisor.h"
#include "dynamix/core/report_fields.h"
#include "dynamix/core/round.h"
#include "dynamix/training/worker_group.h"

namespace dynamix {

// The local batches for the next window, one per worker; called on rank 0 only.
using Decide = std::function<std::vector<int>(const Round&)>;
// Told of each round and what was decided, on rank 0, but not while replaying.
using OnRound = std::function<void(const Round&, const std::vector<int>& sizes)>;

class InProcessAdvisor : public Advisor {
 public:
  // `group` is borrowed: it belongs to the job and outlives its advisor.
  InProcessAdvisor(WorkerGroup& group, const JobSettings& settings, Decide decide,
                   OnRound on_round = {});

  Status Submit(std::int64_t index, const RoundEntry& entry) override;
  Answer Poll() override;
  std::string Save() const override;
  Status Restore(const std::string& state) override;

 private:
  Round MakeRound(std::int64_t index, const std::vector<double>& packed) const;

  WorkerGroup& group_;
  JobSettings settings_;
  Decide decide_;
  OnRound on_round_;
  std::vector<double> history_;  // rank 0: packed rounds, one after another
  std::optional<int> batch_;
};

}  // namespace dynamix
