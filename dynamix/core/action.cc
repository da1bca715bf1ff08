#include "dynamix/core/action.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

// One set of five: what each does to a batch, and its name.
struct ActionSet {
  std::string_view kind;
  std::array<double, kActionCount> team_factors, local_factors;
  std::array<double, kActionCount> steps;  // samples per worker
  std::array<std::string_view, kActionCount> team_names, local_names;
};
constexpr std::array<double, kActionCount> kNoFactors = {1, 1, 1, 1, 1};
// Parts of the way that actions go which name a place, in logarithms.
constexpr double kAnchoredPull = 0.25;
constexpr double kGuidedPull = 0.75;
constexpr int kToBase = 4;  // of the guided set
constexpr std::array<double, kActionCount> kNoSteps = {0, 0, 0, 0, 0};
constexpr std::array<double, kActionCount> kSmallFactors = {1 / 1.5, 1 / 1.125, 1, 1.125, 1.5};
constexpr std::array<std::string_view, kActionCount> kSmallNames = {"/1.5", "/1.125", "hold",
                                                                    "x1.125", "x1.5"};
constexpr std::array<std::string_view, kActionCount> kStepNames = {"-100", "-25", "hold", "+25",
                                                                   "+100"};
// In the order of ActionKind.
constexpr std::array<ActionSet, kActionKindCount> kSets = {{
    {"relative", kSmallFactors, kSmallFactors, kNoSteps, kSmallNames, kSmallNames},
    {"additive", kNoFactors, kNoFactors, {-100, -25, 0, 25, 100}, kStepNames, kStepNames},
    {"wide",
     {1.0 / 3, 1 / 1.25, 1, 1.25, 3},
     kSmallFactors,
     kNoSteps,
     {"/3", "/1.25", "hold", "x1.25", "x3"},
     kSmallNames},
    {"anchored",
     {1.0 / 16, 1.0 / 4, 1, 4, 16},
     kSmallFactors,
     kNoSteps,
     {"to base/16", "to base/4", "to base", "to base x4", "to base x16"},
     kSmallNames},
    {"guided",
     {1.0 / 2, 1, 1, 2, 1},
     kSmallFactors,
     kNoSteps,
     {"to soonest/2", "to soonest", "hold", "to soonest x2", "to base"},
     kSmallNames},
}};

const ActionSet& SetOf(ActionKind kind) { return kSets[static_cast<int>(kind)]; }

bool NamesPlaces(ActionKind kind) {
  return kind == ActionKind::kAnchored || kind == ActionKind::kGuided;
}

void CheckAction(int action) {
  DYNAMIX_CHECK(action >= 0 && action < kActionCount, "an action is an index into the set");
}

// What a team action multiplies the global batch with; of the sets that multiply.
double TeamFactor(ActionKind kind, int action, const Round& round, const Landmarks& landmarks) {
  const double factor = SetOf(kind).team_factors[action];
  const bool guided = kind == ActionKind::kGuided;
  if (!NamesPlaces(kind) || (guided && action == kHold)) return factor;
  const double anchor = guided && action != kToBase ? landmarks.soonest : BaseBatch(round);
  const double global_batch = round.GlobalBatch();
  if (!(global_batch > 0) || !(anchor > 0)) return 1;
  return std::pow(anchor * factor / global_batch, guided ? kGuidedPull : kAnchoredPull);
}

ActionMask MaskFor(bool can_shrink, bool can_grow) {
  return {can_shrink, can_shrink, true, can_grow, can_grow};
}

// Local batches wanted by a learned policy, before clamping.
std::vector<double> Wanted(const Round& round, const States& states, const Actions& actions,
                           const ActionOptions& options) {
  std::vector<double> weights = states.shares;
  if (options.base == LocalBase::kCurrent) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = round.entries[i].batch;
  }
  const GlobalBounds bounds = BoundsOf(round);
  const double factor = options.team ? actions.team_factor.value_or(0) : 1;
  const double wish = factor > 0
                          ? factor * round.GlobalBatch()
                          : AdjustGlobal(options.kind, actions.team, round, states.landmarks);
  const double target = std::clamp(wish, bounds.lowest, bounds.highest);
  std::vector<double> base = SplitGlobalBatch(round, target, weights);
  if (!options.local) return base;
  std::vector<double> adjusted = base;
  for (std::size_t i = 0; i < adjusted.size(); ++i)
    adjusted[i] = std::max(0.0, AdjustLocal(options.kind, actions.local[i], base[i]));
  return options.team ? SplitGlobalBatch(round, target, adjusted) : adjusted;
}

}  // namespace

std::string Format(const ActionOptions& options) {
  DYNAMIX_CHECK(options.team || options.local, "at least one level of actions is on");
  std::string text(SetOf(options.kind).kind);
  text += options.base == LocalBase::kShare ? ",share," : ",current,";
  return text + (options.team && options.local ? "team+local" : options.team ? "team" : "local");
}

ActionOptions ParseActionOptions(std::string_view text) {
  for (int kind = 0; kind < kActionKindCount; ++kind) {
    for (LocalBase base : {LocalBase::kShare, LocalBase::kCurrent}) {
      for (int levels = 1; levels <= 3; ++levels) {
        const ActionOptions options{static_cast<ActionKind>(kind), base, (levels & 1) != 0,
                                    (levels & 2) != 0};
        if (Format(options) == text) return options;
      }
    }
  }
  throw InputError::OutOfRange(
      "actions", text,
      "KIND,BASE,LEVELS with KIND guided|anchored|wide|relative|additive, BASE share|current, "
      "LEVELS team|local|team+local");
}

std::string TeamActionName(ActionKind kind, int action) {
  CheckAction(action);
  return std::string(SetOf(kind).team_names[action]);
}

std::string LocalActionName(ActionKind kind, int action) {
  CheckAction(action);
  return std::string(SetOf(kind).local_names[action]);
}

double AdjustGlobal(ActionKind kind, int action, const Round& round, const Landmarks& landmarks) {
  CheckAction(action);
  return round.GlobalBatch() * TeamFactor(kind, action, round, landmarks) +
         SetOf(kind).steps[action] * round.ActiveCount();
}

double AdjustLocal(ActionKind kind, int action, double batch) {
  CheckAction(action);
  const ActionSet& set = SetOf(kind);
  return batch * set.local_factors[action] + set.steps[action];
}

std::optional<double> MeanTeamFactor(ActionKind kind, std::span<const float> probabilities,
                                     const Round& round, const Landmarks& landmarks) {
  DYNAMIX_CHECK(probabilities.size() == kActionCount, "one probability per action");
  if (kind == ActionKind::kAdditive) return std::nullopt;
  double mean = 0;
  for (int a = 0; a < kActionCount; ++a)
    mean += probabilities[a] * std::log(TeamFactor(kind, a, round, landmarks));
  return std::exp(mean);
}

ActionMask TeamMask(const Round& round, const ActionOptions& options) {
  if (!options.team) return MaskFor(false, false);
  if (NamesPlaces(options.kind)) return MaskFor(true, true);
  bool can_shrink = false, can_grow = false;
  for (const RoundEntry& entry : round.entries) {
    if (!entry.active) continue;
    can_shrink = can_shrink || entry.batch > entry.bounds.lowest();
    can_grow = can_grow || entry.batch < entry.bounds.highest();
  }
  return MaskFor(can_shrink, can_grow);
}

ActionMask LocalMask(const RoundEntry& entry, const ActionOptions& options) {
  if (!options.local || !entry.Reported()) return MaskFor(false, false);
  return MaskFor(entry.batch > entry.bounds.lowest(), entry.batch < entry.bounds.highest());
}

double OpeningBatch(const Round& round, const ActionOptions& options) {
  return options.team && NamesPlaces(options.kind) ? BaseBatch(round) : kMissing;
}

std::vector<int> Open(const Round& round, double global_batch) {
  std::vector<int> sizes = Batches(round);
  if (!(global_batch > 0) || global_batch == round.GlobalBatch()) return sizes;
  const std::vector<double> wanted =
      SplitGlobalBatch(round, global_batch, {sizes.begin(), sizes.end()});
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (round.entries[i].active)
      sizes[i] = ClampBatch(wanted[i], sizes[i], round.entries[i].bounds);
  return sizes;
}

std::vector<int> Apply(const Round& round, const States& states, const Decisions& decisions,
                       const ActionOptions& options) {
  const std::size_t count = round.entries.size();
  DYNAMIX_CHECK(states.shares.size() == count, "one share per worker");
  std::vector<double> wanted;
  if (const auto* actions = std::get_if<Actions>(&decisions)) {
    DYNAMIX_CHECK(!options.local || actions->local.size() == count, "one local action per worker");
    wanted = Wanted(round, states, *actions, options);
  } else {
    wanted = std::get<Sizes>(decisions).local;
    DYNAMIX_CHECK(wanted.size() == count, "one size per worker");
  }
  std::vector<int> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const RoundEntry& entry = round.entries[i];
    sizes[i] = entry.active ? ClampBatch(wanted[i], entry.batch, entry.bounds) : entry.batch;
  }
  return sizes;
}

}  // namespace dynamix
