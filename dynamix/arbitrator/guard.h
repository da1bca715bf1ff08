// Guard: sees to it that advice does not make a job slower than leaving it alone.
//
//   alone      the start batches in sum, shared so that all workers finish together
//   standing   speed of the batches in force / speed alone
//              (TimeToGo::Speed, at today's noise scale, schedule and machines: time_line.h)
//   advise     the policy decides, as long as
//                median standing of the last `rounds` rounds     >= tolerance
//                rise of the smoothed loss above its best        <= loss_tolerance - 1
//   fall back  alone, for `hold` rounds; then the policy gets another chance, and each fallback in
//              a row doubles `hold`
//
// Both speeds are those of one moment: neither slower machines nor a noise scale that moves is held
// against the policy. While nobody reports a noise scale, every sample counts the same. A job that
// runs its start batches is left alone as it is. Not thread-safe; never fails: a round without
// measurements changes nothing, and before the first one nobody changes anything.
#pragma once

#include <deque>
#include <vector>

#include "dynamix/arbitrator/progress.h"
#include "dynamix/core/noise_scale.h"
#include "dynamix/core/round.h"
#include "dynamix/core/time_line.h"

namespace dynamix {

struct GuardOptions {
  bool on = true;
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
  // Looks at the round that just closed. In kAdvises the policy decides; in kFallsBack batches() do;
  // in kMeasures nobody changes anything.
  State Observe(const Round& round);
  State state() const { return options_.on ? state_ : State::kAdvises; }

  // To fall back to, one per entry of the last round; 0 for inactive ones.
  const std::vector<int>& batches() const { return alone_; }
  int fallbacks() const { return fallbacks_; }
  // Of the last round; missing when not measured, or nothing was changed.
  double standing() const { return standing_; }
  // A new policy starts with a clean record.
  void Reset();
  void VisitMemory(Memory& memory) {
    memory(state_, time_, noise_, standing_, standings_, loss_, best_loss_, alone_, hold_left_,
           in_a_row_, fallbacks_, advised_);
  }

 private:
  double Standing(const Round& round) const;
  bool IsWorse() const;
  void FallBack(const Round& round);
  bool IsSharedBy(const Round& round) const;  // batches(), by those who are active
  void ShareStart(const Round& round);

  GuardOptions options_;
  State state_ = State::kMeasures;
  TimeLine time_;
  NoiseMemory noise_{0.3};
  double standing_ = kMissing;
  std::deque<double> standings_;  // under advice, newest last
  SmoothedLoss loss_;
  double best_loss_ = kMissing;
  std::vector<int> alone_;
  int hold_left_ = 0, in_a_row_ = 0, fallbacks_ = 0, advised_ = 0;
};

}  // namespace dynamix
