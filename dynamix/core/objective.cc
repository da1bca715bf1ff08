#include "dynamix/core/objective.h"

#include <algorithm>
#include <charconv>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

// The one list of fields.
template <typename AnyObjective, typename Visit>
void VisitObjective(AnyObjective& objective, const Visit& visit) {
  visit("quality", objective.reward.quality, 0.0, 10.0);
  visit("efficiency", objective.reward.efficiency, 0.0, 10.0);
  visit("stability", objective.reward.stability, 0.0, 10.0);
  visit("straggler", objective.reward.straggler, 0.0, 10.0);
  visit("team", objective.reward.team, 0.0, 10.0);
  visit("team_discount", objective.team_discount, 0.0, 0.9999);
  visit("local_discount", objective.local_discount, 0.0, 0.9999);
  visit("units_per_run", objective.units_per_run, 1.0, 1e6);
  visit("missed_cost", objective.missed_cost, 0.0, 10.0);
}

}  // namespace

void Objective::Validate() const {
  VisitObjective(*this, [](std::string_view name, double value, double low, double high) {
    RequireInRange(name, value, low, high);
  });
}

std::string Format(const Objective& objective) {
  std::string text;
  VisitObjective(objective, [&text](std::string_view name, double value, double, double) {
    char number[32];
    const auto written = std::to_chars(number, number + sizeof number, value);  // the shortest
    text.append(text.empty() ? "" : " ").append(name).append("=").append(number, written.ptr);
  });
  return text;
}

Objective ParseObjective(std::string_view text) {
  Objective objective;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    bool known = false;
    VisitObjective(objective, [&](std::string_view name, double& value, double, double) {
      if (word.substr(0, equals) != name || equals == std::string_view::npos) return;
      const auto [end, error] =
          std::from_chars(word.data() + equals + 1, word.data() + word.size(), value);
      known = error == std::errc() && end == word.data() + word.size();
    });
    if (!known) throw InputError::OutOfRange("objective", std::string(word), "NAME=NUMBER");
  }
  objective.Validate();
  return objective;
}

}  // namespace dynamix
