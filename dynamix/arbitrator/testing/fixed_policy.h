// A policy whose decision is known: every worker is to have the size it is told. Test code only.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "dynamix/core/policy_spec.h"

namespace dynamix {

class FixedPolicy : public Policy {
 public:
  explicit FixedPolicy(double size) : size_(size) {}
  std::string_view name() const override { return "fixed"; }
  Decisions Decide(const Round& round, const States&, Rng&) override {
    return Sizes{std::vector<double>(round.entries.size(), size_)};
  }
  void Reset() override {}

 private:
  double size_;
};

inline PolicySpec Fixed(double size) {
  return {"fixed", {}, [size] { return std::make_unique<FixedPolicy>(size); }};
}

}  // namespace dynamix
