// How long a job still takes at another global batch, under its learning-rate rule and its schedule:
// what a step at that batch is worth, and how many of them the target needs. Formulas head
// time_to_go.cc. A value; never fails: what is not measurable is left out.
#pragma once

#include <array>

#include "dynamix/core/learning_rate.h"
#include "dynamix/core/round.h"

namespace dynamix {

struct TimeToGoOptions {
  double noise = 0.6;       // k_n: part of a step that noise takes at the base batch, in the end
  double burn_in = 100;     // n_0: iterations after which it takes half of that
  double curvature = 0.06;  // k_c: part of a step that curvature takes at the base rate
  double adaptive = 0.36;   // k_a: part of a step that both take, with Adam and its kin
  double horizon = 0.5;     // part of the schedule ahead in which the base batch gets to the target
};

class TimeToGo {
 public:
  // For the schedule and the rule of `round`, at a smoothed noise scale in samples. The round's base
  // batch (its start when it names none) and `noise` are above 0.
  TimeToGo(const Round& round, double noise, const TimeToGoOptions& options = {});

  // One over the time to go, up to a factor that does not depend on the batch; 0 when steps at this
  // batch lead nowhere.
  double Speed(double batch, double iteration_ms) const;

 private:
  // The integral of the schedule's factor from now on, and its inverse. The schedule keeps its last
  // factor after its end.
  class ScheduleAhead {
   public:
    ScheduleAhead(Schedule schedule, double start);
    double Sum(double span) const;
    // The span whose integral is `sum`.
    double Span(double sum) const;

   private:
    static constexpr int kCells = 100;
    double cell_, last_;
    std::array<double, kCells + 1> sums_;
  };

  double Factor(double batch) const;   // f(B)
  double Worth(double batch) const;    // P(B)
  double Advance(double batch) const;  // A(B)

  LearningRateRule rule_;
  ScheduleClock clock_;
  bool adaptive_;
  double base_, noise_;
  double noise_part_, curvature_part_;
  ScheduleAhead ahead_;
  double distance_;  // D* / S
};

}  // namespace dynamix
