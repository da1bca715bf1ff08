#include "dynamix/arbitrator/guard.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/input_error.h"
#include "dynamix/core/time_to_go.h"

namespace dynamix {
namespace {

constexpr int kMostDoublings = 6;

double StartBatch(const Round& round) {
  double sum = 0;
  for (const RoundEntry& entry : round.entries) sum += entry.active ? entry.start_batch : 0;
  return sum;
}

bool RunsItsStart(const Round& round) {
  return std::all_of(round.entries.begin(), round.entries.end(), [](const RoundEntry& entry) {
    return !entry.active || entry.batch == entry.start_batch;
  });
}

double Median(std::deque<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void GuardOptions::Validate() const {
  RequireInRange("guard.rounds", rounds, 1, 1000);
  RequireInRange("guard.tolerance", tolerance, 1e-6, 1.0);
  RequireInRange("guard.loss_tolerance", loss_tolerance, 1.0, 1e6);
  RequireInRange("guard.hold", hold, 1, 100000);
}

Guard::State Guard::Observe(const Round& round) {
  if (!options_.on) return state();
  time_.Add(round);
  noise_.Add(round);
  loss_.Add(MeanLoss(round));
  if (IsMissing(best_loss_) || loss_.value() < best_loss_) best_loss_ = loss_.value();
  standing_ = Standing(round);
  switch (state_) {
    case State::kMeasures:
      if (time_.known()) state_ = State::kAdvises;
      break;
    case State::kAdvises:
      // A spell without fallback clears the record.
      if (++advised_ > 4 * options_.hold) in_a_row_ = 0;
      if (!IsMissing(standing_)) standings_.push_back(standing_);
      if (static_cast<int>(standings_.size()) > options_.rounds) standings_.pop_front();
      if (IsWorse() && !RunsItsStart(round)) FallBack(round);
      break;
    case State::kFallsBack:
      if (!IsSharedBy(round)) ShareStart(round);
      if (--hold_left_ > 0) break;
      best_loss_ = loss_.value();
      state_ = State::kAdvises;
      standings_.clear();
      advised_ = 0;
  }
  return state();
}

double Guard::Standing(const Round& round) const {
  const double batch = round.GlobalBatch(), start = StartBatch(round);
  if (!time_.known() || !(batch > 0) || !(start > 0) || RunsItsStart(round)) return kMissing;
  const double now_ms = time_.IterationMs(round), alone_ms = time_.Curve(round).IterationMs(start);
  const double noise = noise_.value();
  if (IsMissing(noise)) return (batch / now_ms) / (start / alone_ms);
  const TimeToGo to_go(round, noise);
  const double alone = to_go.Speed(start, alone_ms);
  return alone > 0 ? to_go.Speed(batch, now_ms) / alone : 1;
}

bool Guard::IsWorse() const {
  if (loss_.RiseAbove(best_loss_) > options_.loss_tolerance - 1) return true;
  return static_cast<int>(standings_.size()) >= options_.rounds &&
         Median(standings_) < options_.tolerance;
}

void Guard::FallBack(const Round& round) {
  state_ = State::kFallsBack;
  ++fallbacks_;
  hold_left_ = options_.hold << std::min(in_a_row_++, kMostDoublings);
  ShareStart(round);
}

bool Guard::IsSharedBy(const Round& round) const {
  return std::equal(alone_.begin(), alone_.end(), round.entries.begin(), round.entries.end(),
                    [](int batch, const RoundEntry& entry) { return (batch > 0) == entry.active; });
}

void Guard::ShareStart(const Round& round) {
  const double start = StartBatch(round);
  alone_.clear();
  // Where lines are nearly flat a split by time is of another sum.
  for (const double share : SplitGlobalBatch(round, start, time_.Split(round, start)))
    alone_.push_back(static_cast<int>(std::lround(share)));
}

void Guard::Reset() {
  in_a_row_ = 0;
  hold_left_ = std::min(hold_left_, 1);
  standings_.clear();
}

}  // namespace dynamix
