#include "dynamix/arbitrator/guard.h"

#include <algorithm>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

// Weight of the newest round in a smoothed value.
constexpr double kSmoothing = 0.3;
constexpr int kMostDoublings = 6;
// Rise of the loss above its best, up to which batches can be good ones.
constexpr double kHealthyRise = 0.1;

}  // namespace

void GuardOptions::Validate() const {
  RequireInRange("guard.measure", measure, 1, 1000);
  RequireInRange("guard.rounds", rounds, 1, 1000);
  RequireInRange("guard.tolerance", tolerance, 1e-6, 1.0);
  RequireInRange("guard.loss_tolerance", loss_tolerance, 1.0, 1e6);
  RequireInRange("guard.hold", hold, 1, 100000);
}

Guard::State Guard::Observe(const Round& round) {
  if (!options_.on) return State::kAdvises;
  loss_.Add(MeanLoss(round));
  noise_scale_ = Smooth(noise_scale_, MeanNoiseScale(round), kSmoothing);
  if (IsMissing(best_loss_) || loss_.value() < best_loss_) best_loss_ = loss_.value();
  if (good_.size() != round.entries.size()) good_ = Batches(round);
  Measure(round);
  switch (state_) {
    case State::kMeasures:
    case State::kFallsBack:
      if (--hold_left_ > 0 || static_cast<int>(rates_.size()) < options_.measure) break;
      before_ = MedianRate();
      best_loss_ = loss_.value();
      state_ = State::kAdvises;
      rates_.clear();
      advised_ = 0;
      break;
    case State::kAdvises:
      if (IsWorse()) FallBack(Batches(round));
  }
  return state_;
}

double Guard::RateOf(const Rate& rate) const {
  return UsefulRate(rate.throughput, rate.batch, noise_scale_);
}

Guard::Rate Guard::MedianRate() const {
  if (rates_.empty()) return {};
  std::vector<Rate> sorted(rates_.begin(), rates_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end(),
                   [this](const Rate& a, const Rate& b) { return RateOf(a) < RateOf(b); });
  return *middle;
}

void Guard::Measure(const Round& round) {
  const Rate rate{Throughput(round), round.GlobalBatch(), Capacity(round)};
  if (IsMissing(rate.throughput)) return;
  rates_.push_back(rate);
  const int kept = state_ == State::kMeasures ? options_.measure : options_.rounds;
  while (static_cast<int>(rates_.size()) > kept) rates_.pop_front();
  if (state_ != State::kAdvises) return;
  // A spell without fallback clears the record.
  if (++advised_ > 4 * options_.hold) in_a_row_ = 0;
  const bool healthy = IsMissing(loss_.value()) || loss_.RiseAbove(best_loss_) <= kHealthyRise;
  if (healthy && RateOf(rate) >= RateOf(before_)) good_ = Batches(round);
}

bool Guard::IsWorse() const {
  if (loss_.RiseAbove(best_loss_) > options_.loss_tolerance - 1) return true;
  if (static_cast<int>(rates_.size()) < options_.rounds) return false;
  const Rate now = MedianRate();
  const double ratio = now.capacity / before_.capacity;
  const double machine = IsMissing(ratio) ? 1 : std::min(1.0, ratio);
  return RateOf(now) < options_.tolerance * RateOf(before_) * machine;
}

void Guard::FallBack(const std::vector<int>& batches) {
  if (batches == good_) {
    // Nothing was changed, so nothing can be taken back: the world is slower now.
    before_ = MedianRate();
    best_loss_ = loss_.value();
    rates_.clear();
    return;
  }
  state_ = State::kFallsBack;
  ++fallbacks_;
  hold_left_ = options_.hold << std::min(in_a_row_++, kMostDoublings);
  rates_.clear();
}

void Guard::Reset() {
  in_a_row_ = 0;
  if (state_ == State::kFallsBack) hold_left_ = std::min(hold_left_, options_.measure);
  rates_.clear();
}

}  // namespace dynamix
