// Actions: five discrete adjustments, of the global batch (team action) or of one worker's share
// (local action), and Apply, which turns a policy's decisions into legal local batches.
//
//   anchored  team: a quarter of the way, in logarithms, to 1/16, 1/4, 1, 4 or 16 times the job's
//             base batch (its start when it names none); local actions as relative
//   guided    team: three quarters of the way, in logarithms, to the landmark `soonest`
//             (landmarks.h), to half or twice of it, or to the base batch; or hold; local actions as
//             relative
//   wide      team: / 3, / 1.25, hold, x 1.25, x 3; local actions as relative
//   relative  / 1.5, / 1.125, hold, x 1.125, x 1.5
//   additive  -100, -25, hold, +25, +100 samples per worker
//
// Apply, for actions a (team) and a_i (local), with shares s_i measured by the encoder:
//   B'   = a(sum_i b_i), inside [sum lowest, sum highest]        B' = B when the team head is off
//   w_i  = B' split in proportion to s_i                         base = share
//        = B' split in proportion to b_i                         base = current
//   b_i' = B' split in proportion to a_i(w_i)                    both heads on
//        = a_i(w_i)                                              team head off
// every split inside the bounds (water filling), then ClampBatch. With both heads on, the team head
// alone moves the global batch and local actions move shares: otherwise workers that dodge the
// blame of being slowest all shrink, and the global batch drifts down (seen in traces:
// docs/learning.md). The published per-worker system is {team off, local on, base current,
// additive}.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dynamix/core/policy.h"
#include "dynamix/core/round.h"

namespace dynamix {

inline constexpr int kActionCount = 5;
inline constexpr int kHold = 2;       // of every set but the team's anchored one
inline constexpr int kToSoonest = 1;  // of the team's guided set

enum class ActionKind : int { kRelative = 0, kAdditive, kWide, kAnchored, kGuided };
inline constexpr int kActionKindCount = 5;
enum class LocalBase : int { kShare = 0, kCurrent };

struct ActionOptions {
  ActionKind kind = ActionKind::kWide;
  LocalBase base = LocalBase::kShare;
  bool team = true;   // one team action per round scales the global batch
  bool local = true;  // one local action per worker adjusts its share
};

// `wide,share,team+local` and the like: stored in policy files, printed, parsed.
std::string Format(const ActionOptions& options);
// Throws InputError naming the text when it is not such a line.
ActionOptions ParseActionOptions(std::string_view text);

// "x1.125", "-25", "hold".
std::string TeamActionName(ActionKind kind, int action);
std::string LocalActionName(ActionKind kind, int action);

// The batch an action makes of a round's global batch and of a local batch, before clamping. A team
// action adds the additive step once per worker.
double AdjustGlobal(ActionKind kind, int action, const Round& round, const Landmarks& landmarks);
double AdjustLocal(ActionKind kind, int action, double batch);

// The factor that a distribution over team actions means on average, in logarithms. Empty for an
// additive set, whose steps depend on the batch.
std::optional<double> MeanTeamFactor(ActionKind kind, std::span<const float> probabilities,
                                     const Round& round, const Landmarks& landmarks);

// Legal actions: hold always; growing unless everything is at its highest; shrinking unless
// everything is at its lowest. Anchored and guided team actions: all, since each has a place to go
// to.
using ActionMask = std::array<bool, kActionCount>;
ActionMask TeamMask(const Round& round, const ActionOptions& options);
ActionMask LocalMask(const RoundEntry& entry, const ActionOptions& options);

// The global batch to open with, before anything is measured: the base batch where team actions name
// places, of which it is one; otherwise missing, the job's start.
double OpeningBatch(const Round& round, const ActionOptions& options);
// The local batches of that, in proportion to the start batches. Inactive workers keep theirs; missing,
// or the sum of the start batches, is the start as it was given.
std::vector<int> Open(const Round& round, double global_batch);

// The local batches that follow from `decisions`, which were taken in `states` (of which shares and
// landmarks count). Inactive workers keep their batch. Legal for any input.
std::vector<int> Apply(const Round& round, const States& states, const Decisions& decisions,
                       const ActionOptions& options);

}  // namespace dynamix
