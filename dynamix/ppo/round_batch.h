// RoundBatch: the rounds of many environments as the two matrices the heads learn from.
//
// Environment e, worker slot s is row e * slots + s of the local head and row e of the team head. A
// slot is active when its worker is there and reported in time; a team row when anybody reported.
// Borrowed observations stay valid until the next Set. Not thread-safe; misuse is a bug
// (CheckFailure).
#pragma once

#include <cstdint>
#include <vector>

#include "dynamix/core/action.h"
#include "dynamix/ppo/rollout.h"

namespace dynamix {

// A team decides when any worker reported. Learning and serving ask the same question here.
bool Decides(const Round& round);

class RoundBatch {
 public:
  RoundBatch(int environments, int slots, const ActionOptions& actions);

  // The shape of a network for these rows.
  NetworkShape LocalShape(const std::vector<int>& hidden) const;
  NetworkShape TeamShape(const std::vector<int>& hidden) const;

  // What environment `environment` shows now; at most `slots` workers.
  void Set(int environment, const Round& round, const States& states);
  Observation Local() const;
  Observation Team() const;

 private:
  int slots_;
  ActionOptions actions_;
  std::vector<float> local_rows_, team_rows_;
  std::vector<std::uint8_t> local_active_, team_active_, local_masks_, team_masks_;
};

// The rows the value tower of a head sees: what Outcome::final_rows takes.
std::span<const float> CriticRows(const Observation& observation);

}  // namespace dynamix
