// CartPole, for tests: many carts side by side, Gymnasium's equations (CartPole-v1), Euler steps of
// 0.02 s.
//
// Fails beyond |x| > 2.4 or |angle| > 12 degrees (terminated); 500 steps are the limit (truncated).
// Reward 1 a step.
#pragma once

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/ppo/advantage.h"

namespace dynamix {

using Cart = std::array<double, 4>;  // x, its speed, angle, its speed

inline Cart MoveCart(const Cart& s, int action) {
  constexpr double kGravity = 9.8, kPole = 0.1, kTotal = 1.1, kHalfLength = 0.5, kTau = 0.02;
  const double force = action == 1 ? 10.0 : -10.0;
  const double cosine = std::cos(s[2]), sine = std::sin(s[2]);
  const double push = (force + kPole * kHalfLength * s[3] * s[3] * sine) / kTotal;
  const double turn = (kGravity * sine - cosine * push) /
                      (kHalfLength * (4.0 / 3.0 - kPole * cosine * cosine / kTotal));
  const double pull = push - kPole * kHalfLength * turn * cosine / kTotal;
  return {s[0] + kTau * s[1], s[1] + kTau * pull, s[2] + kTau * s[3], s[3] + kTau * turn};
}

class CartPole {
 public:
  CartPole(int carts, std::uint64_t seed)
      : rewards(carts, 1),
        discounts(carts, 0.99),
        ends(carts),
        states(carts * 4),
        final_states(carts * 4),
        rng_(seed),
        carts_(carts),
        steps_(carts) {
    for (int i = 0; i < carts; ++i) Start(i);
  }

  void Step(const std::vector<int>& actions) {
    for (std::size_t i = 0; i < carts_.size(); ++i) {
      carts_[i] = MoveCart(carts_[i], actions[i]);
      ++steps_[i];
      const bool fallen =
          std::abs(carts_[i][0]) > 2.4 || std::abs(carts_[i][2]) > 12 * std::numbers::pi / 180;
      ends[i] = fallen             ? StepEnd::kTerminated
                : steps_[i] >= 500 ? StepEnd::kTruncated
                                   : StepEnd::kContinues;
      for (int k = 0; k < 4; ++k) final_states[i * 4 + k] = static_cast<float>(carts_[i][k]);
      if (ends[i] == StepEnd::kContinues) {
        for (int k = 0; k < 4; ++k) states[i * 4 + k] = final_states[i * 4 + k];
      } else {
        returns.push_back(steps_[i]);
        Start(static_cast<int>(i));
      }
    }
  }

  std::vector<double> rewards, discounts;
  std::vector<StepEnd> ends;
  std::vector<float> states, final_states;  // carts x 4
  std::vector<double> returns;              // of the finished episodes, in order

 private:
  void Start(int i) {
    for (int k = 0; k < 4; ++k) {
      carts_[i][k] = rng_.Uniform(-0.05, 0.05);
      states[i * 4 + k] = static_cast<float>(carts_[i][k]);
    }
    steps_[i] = 0;
  }

  Rng rng_;
  std::vector<Cart> carts_;
  std::vector<int> steps_;
};

}  // namespace dynamix
