// Guard: sees to it that advice does not make a live job worse.
//
//   measure     the first rounds pass without advice; their median rate is the rate before
//   advise      the policy decides, as long as
//                 median rate of the last rounds  >= tolerance * rate before
//                                                    * min(1, capacity now / capacity then)
//                 rise of the smoothed loss above its best (SmoothedLoss)
//                                                 <= loss_tolerance - 1
//   fall back   the last good batches for `hold` rounds, whose rate is the new rate before; then
//               the policy gets another chance, and each fallback in a row doubles `hold`
//
// Rates are UsefulRate (progress.h), both at today's noise scale: neither a noise scale that moves
// nor a slower machine (capacity) is the policy's fault. SmoothedLoss measures losses of any sign.
// "Good" batches are those in force when the rate was last above the one before; a job that runs
// them anyway is only measured anew. Not thread-safe; never fails: a round without measurements
// changes nothing.
#pragma once

#include <deque>
#include <vector>

#include "dynamix/arbitrator/progress.h"
#include "dynamix/core/round.h"

namespace dynamix {

struct GuardOptions {
  bool on = true;
  int measure = 3;              // rounds before the first advice, [1, 1000]
  int rounds = 5;               // rounds of advice a verdict needs, [1, 1000]
  double tolerance = 0.8;       // (0, 1]
  double loss_tolerance = 1.5;  // > 1
  int hold = 20;                // rounds of the first fallback, [1, 100000]

  void Validate() const;
};

class Guard {
 public:
  explicit Guard(const GuardOptions& options) : options_(options) {}

  enum class State { kMeasures, kAdvises, kFallsBack };
  // Looks at the round that just closed. In kAdvises the policy decides; in kFallsBack
  // good_batches() do; in kMeasures nobody changes anything.
  State Observe(const Round& round);

  const std::vector<int>& good_batches() const { return good_; }
  int fallbacks() const { return fallbacks_; }
  // Useful samples per second of the last round; missing when not measured.
  double rate() const { return rates_.empty() ? kMissing : RateOf(rates_.back()); }
  // A new policy starts with a clean record, from the rate before that is known.
  void Reset();
  void VisitMemory(Memory& memory) {
    memory(state_, rates_, before_, noise_scale_, loss_, best_loss_, good_, hold_left_, in_a_row_,
           fallbacks_, advised_);
  }

 private:
  // What a round achieved, or a median of several.
  struct Rate {
    double throughput = kMissing, batch = kMissing, capacity = kMissing;
    void VisitMemory(Memory& memory) { memory(throughput, batch, capacity); }
  };
  double RateOf(const Rate& rate) const;
  Rate MedianRate() const;
  void Measure(const Round& round);
  bool IsWorse() const;
  void FallBack(const std::vector<int>& batches);

  GuardOptions options_;
  State state_ = State::kMeasures;
  std::deque<Rate> rates_;  // of the last rounds in this state, newest last
  Rate before_;
  double noise_scale_ = kMissing;  // smoothed
  SmoothedLoss loss_;
  double best_loss_ = kMissing;
  std::vector<int> good_;
  int hold_left_ = 0, in_a_row_ = 0, fallbacks_ = 0, advised_ = 0;
};

}  // namespace dynamix
