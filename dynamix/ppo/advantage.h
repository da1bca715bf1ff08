// ComputeAdvantages: generalised advantage estimation for rows that end, are cut off, leave and
// come back (Schulman et al. 2016, arXiv 1506.02438).
//
// For one row and its active step t, with reward r_t, value V_t and discount g_t:
//
//   delta_t  = r_t + g_t V_{t+1} - V_t
//   A_t      = delta_t + g_t lambda A_{t+1}
//   return_t = A_t + V_t
//
// Where the row ends with step t, the sum over lambda stops:
//
//   terminated   V_{t+1} = 0              A_{t+1} = 0
//   truncated    V_{t+1} = bootstrap_t    A_{t+1} = 0
//
// bootstrap_t is the value of the final observation: a time limit is not a terminal state (Pardo et
// al. 2018, arXiv 1712.00378).
//
// Inactive steps (a worker that was late, or is away) take no decision. Such a step is part of the
// row's last active transition: its reward is added, discounted, and the bootstrap moves to the
// row's next active step, with one factor lambda for the whole transition (a semi-MDP; Sutton,
// Precup, Singh 1999). Its own advantage and return are 0 and must not be used. If no active step
// follows, `last_values` closes the row. Pure functions; sizes are checked (CheckFailure).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dynamix {

enum class StepEnd : std::uint8_t { kContinues = 0, kTerminated, kTruncated };

// steps x rows, row-major (all rows of step 0 first).
struct AdvantageInput {
  int steps = 0;
  int rows = 0;
  std::span<const double> rewards;
  std::span<const double> values;     // V of the state the decision was taken in
  std::span<const double> discounts;  // from this step to the next one, in [0, 1]
  std::span<const StepEnd> ends;
  std::span<const double> bootstraps;    // read where ends is kTruncated
  std::span<const std::uint8_t> active;  // empty: every step of every row
  std::span<const double> last_values;   // rows: V of the states after the last step
};

struct Advantages {
  std::vector<double> advantages;  // steps x rows
  std::vector<double> returns;     // steps x rows
};

Advantages ComputeAdvantages(const AdvantageInput& input, double lambda);

}  // namespace dynamix
