#include "dynamix/page/reasons.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "dynamix/core/features.h"
#include "dynamix/core/policy_spec.h"

namespace dynamix {
namespace {

std::vector<float> Softmax(std::span<const float> logits) {
  const float highest = *std::max_element(logits.begin(), logits.end());
  std::vector<float> probabilities;
  float sum = 0;
  for (const float logit : logits) sum += probabilities.emplace_back(std::exp(logit - highest));
  for (float& probability : probabilities) probability /= sum;
  return probabilities;
}

double Speed(const Report& report) { return 1e3 * report.local_batch / report.compute_ms; }

// Over the workers that reported.
template <typename Value, typename Choose>
double Among(const RecordedRound& round, Value value, Choose choose) {
  double chosen = kMissing;
  for (const Report& report : round.workers) {
    if (report.iterations == 0 || IsMissing(value(report))) continue;
    chosen = IsMissing(chosen) ? value(report) : choose(chosen, value(report));
  }
  return chosen;
}

const auto kLargest = [](double a, double b) { return std::max(a, b); };
const auto kLeast = [](double a, double b) { return std::min(a, b); };

struct RuleInput {
  const char* name;
  double (*value)(const RecordedRound& round);
};

constexpr RuleInput kNoise = {"noise scale",
                              [](const RecordedRound& r) { return r.training.noise_scale; }};
constexpr RuleInput kGlobal = {"global batch",
                               [](const RecordedRound& r) { return r.GlobalBatch(); }};
constexpr RuleInput kFastest = {"fastest worker, samples/s",
                                [](const RecordedRound& r) { return Among(r, Speed, kLargest); }};
constexpr RuleInput kSlowest = {"slowest worker, samples/s",
                                [](const RecordedRound& r) { return Among(r, Speed, kLeast); }};
constexpr RuleInput kExchange = {
    "exchange, ms", [](const RecordedRound& r) {
      return Among(
          r, [](const Report& report) { return report.communication_ms; }, kLargest);
    }};
constexpr RuleInput kRate = {"learning rate",
                             [](const RecordedRound& r) { return r.training.learning_rate; }};
constexpr RuleInput kProgress = {"part of the schedule",
                                 [](const RecordedRound& r) { return r.training.progress; }};

// What each rule reads (policies/rules.h).
const std::map<std::string, std::vector<RuleInput>> kRuleInputs = {
    {"static", {}},
    {"balanced", {kFastest, kSlowest}},
    {"base", {kFastest, kSlowest}},
    {"noise_scale", {kNoise, kGlobal, kFastest, kSlowest}},
    {"goodput", {kNoise, kGlobal, kExchange, kFastest, kSlowest}},
    {"composite", {kNoise, kGlobal, kExchange, kRate, kProgress, kFastest, kSlowest}}};

std::vector<Reason> Inputs(const std::string& rule, const RecordedRound& round) {
  std::vector<Reason> reasons;
  for (const RuleInput& input : kRuleInputs.at(rule))
    if (const double value = input.value(round); !IsMissing(value))
      reasons.push_back({input.name, value, kMissing});
  return reasons;
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

Reasons::Reasons(const std::string& policy, const PolicyModel* model) {
  if (model == nullptr) {
    const std::string plain = WithoutPrefixes(policy), name = plain.substr(0, plain.find(':'));
    if (kRuleInputs.contains(name)) rule_ = name;
    return;
  }
  kind_ = model->actions.kind;
  if (!model->team || kind_ == ActionKind::kAdditive) return;
  team_ = &*model->team;
  evaluator_.emplace(team_->network.shape());
}

// Element f: with feature f at its mean; the last one: as it was.
std::vector<double> Reasons::LogFactors(std::span<const float> state) {
  const std::size_t width = state.size();
  std::vector<float> row(width);
  team_->actor_inputs.Apply(state, row);
  std::vector<float> rows;
  std::vector<int> all;
  for (std::size_t f = 0; f <= width; ++f) {
    rows.insert(rows.end(), row.begin(), row.end());
    if (f < width) rows[f * width + f] = 0;
    all.push_back(static_cast<int>(f));
  }
  std::vector<float> logits(all.size() * kActionCount);
  evaluator_->Logits(team_->network, rows, all, logits);
  // Whatever the batch is, it cancels in differences. The state knows where places are from there.
  Round any_batch;
  any_batch.entries = {RoundEntry{.start_batch = 1, .batch = 1}};
  any_batch.base_batch = std::exp2(-state[kBaseRatio]);
  const Landmarks landmarks{.soonest = std::exp2(state[kSoonestGap])};
  std::vector<double> log_factors;
  for (std::size_t f = 0; f <= width; ++f) {
    const auto of_row = std::span<const float>(logits).subspan(f * kActionCount, kActionCount);
    log_factors.push_back(std::log2(*MeanTeamFactor(kind_, Softmax(of_row), any_batch, landmarks)));
  }
  return log_factors;
}

std::vector<Reason> Reasons::Influences(const RecordedRound& round) {
  const std::size_t width = round.team_state.size();
  const std::vector<double> log_factors = LogFactors(round.team_state);
  const std::vector<Column> columns = TeamColumns();
  std::vector<Reason> reasons;
  for (std::size_t f = 0; f < width; ++f)
    reasons.push_back({columns[f].name, round.team_state[f], log_factors[width] - log_factors[f]});
  return reasons;
}

std::vector<Reason> Reasons::Of(const RecordedRound& round, const RecordedRound* previous,
                                int most) {
  if (!rule_.empty()) return Inputs(rule_, round);
  const bool explains = learned() && round.actions &&
                        round.team_state.size() == static_cast<std::size_t>(TeamWidth());
  std::vector<Reason> reasons = explains ? Influences(round) : Changes(round, previous);
  std::erase_if(reasons, [](const Reason& reason) { return !(std::abs(reason.influence) > 0.01); });
  std::sort(reasons.begin(), reasons.end(), [](const Reason& a, const Reason& b) {
    return std::abs(a.influence) > std::abs(b.influence);
  });
  if (static_cast<int>(reasons.size()) > most) reasons.erase(reasons.begin() + most, reasons.end());
  // The place that the actions are named after: without it a policy that goes there has no reason.
  if (explains && kind_ == ActionKind::kGuided && !IsMissing(round.team_state[kSoonestGap]))
    reasons.insert(reasons.begin(),
                   {"soonest batch", round.GlobalBatch() * std::exp2(round.team_state[kSoonestGap]),
                    kMissing});
  return reasons;
}

std::string Reasons::Title() const {
  if (!rule_.empty()) return "what the rule read";
  return learned() ? "features that drove it" : "what changed";
}

std::string Reasons::Explanation() const {
  if (!rule_.empty()) return "The rule's inputs, as measured in the round.";
  if (learned() && kind_ == ActionKind::kGuided)
    return "The soonest batch is the global batch with which the target is reached soonest, as "
           "estimated from what was measured; actions are named after it. In brackets: how much "
           "the feature raised or lowered the global batch, against its mean in training (in "
           "powers "
           "of two: +1 doubles it).";
  if (learned())
    return "In brackets: how much the feature raised or lowered the global batch, against its mean "
           "in training (in powers of two: +1 doubles it).";
  return "What drove the decisions is not known. In brackets: change since the round before, in "
         "parts of the feature's range.";
}

}  // namespace dynamix
