#include "dynamix/cli/reasons.h"

#include <algorithm>
#include <cmath>

#include "dynamix/cli/data_folder.h"
#include "dynamix/core/features.h"
#include "dynamix/core/input_error.h"
#include "dynamix/policies/make_policy.h"

namespace dynamix {
namespace {

double LogProbability(std::span<const float> logits, int action) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  return logits[action] - highest - std::log(sum);
}

// How far the global features moved, in parts of their range.
std::vector<Reason> Changes(const RecordedRound& round, const RecordedRound* previous) {
  std::vector<Reason> reasons;
  if (previous == nullptr) return reasons;
  const std::span<const Feature> features = GlobalFeatures();
  for (std::size_t f = 0; f < features.size() && f < round.team_state.size(); ++f) {
    const double change = round.team_state[f] - previous->team_state[f];
    if (!(std::abs(change) > 0)) continue;
    reasons.push_back({std::string(features[f].name), round.team_state[f],
                       change / (features[f].high - features[f].low)});
  }
  return reasons;
}

}  // namespace

Reasons::Reasons(const PolicyModel* model) : model_(model) {
  if (model_ != nullptr && model_->team) team_.emplace(model_->team->network.shape());
}

std::vector<Reason> Reasons::Influences(const RecordedRound& round) {
  const int width = TeamWidth();
  std::vector<float> row(width);
  model_->team->actor_inputs.Apply(round.team_state, row);
  // Row f has feature f at its mean; the last row is as it was.
  std::vector<float> rows;
  std::vector<int> all;
  for (int f = 0; f <= width; ++f) {
    rows.insert(rows.end(), row.begin(), row.end());
    if (f < width) rows[static_cast<std::size_t>(f) * width + f] = 0;
    all.push_back(f);
  }
  std::vector<float> logits(all.size() * kActionCount);
  team_->Logits(model_->team->network, rows, all, logits);
  const auto log_probability = [&](int f) {
    return LogProbability(std::span<const float>(logits).subspan(f * kActionCount, kActionCount),
                          round.actions->team);
  };
  const double now = log_probability(width);
  const std::vector<Column> columns = TeamColumns();
  std::vector<Reason> reasons;
  for (int f = 0; f < width; ++f)
    reasons.push_back({columns[f].name, round.team_state[f], now - log_probability(f)});
  return reasons;
}

std::vector<Reason> Reasons::Of(const RecordedRound& round, const RecordedRound* previous,
                                int most) {
  const bool explains =
      team_ && round.actions && round.team_state.size() == static_cast<std::size_t>(TeamWidth());
  std::vector<Reason> reasons = explains ? Influences(round) : Changes(round, previous);
  std::erase_if(reasons, [](const Reason& reason) { return !(std::abs(reason.influence) > 0.01); });
  std::sort(reasons.begin(), reasons.end(), [](const Reason& a, const Reason& b) {
    return std::abs(a.influence) > std::abs(b.influence);
  });
  if (static_cast<int>(reasons.size()) > most) reasons.erase(reasons.begin() + most, reasons.end());
  return reasons;
}

std::optional<PolicyModel> FindModel(const std::string& policy) {
  if (IsRule(policy)) return std::nullopt;
  try {
    Result<PolicyModel> loaded = LoadPolicy(FindData("policy", policy, "policies", ".safetensors"));
    if (loaded) return std::move(loaded).value();
  } catch (const InputError&) {  // the report still shows everything else
  }
  return std::nullopt;
}

}  // namespace dynamix
