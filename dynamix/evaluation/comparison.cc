#include "dynamix/evaluation/comparison.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string_view>

#include "dynamix/core/report.h"
#include "dynamix/evaluation/table.h"

namespace dynamix {
namespace {

using nlohmann::json;

double NumberOf(const json& summary, const char* name) {
  const auto found = summary.find(name);
  return found != summary.end() && found->is_number() ? found->get<double>() : kMissing;
}

ComparedPolicy Combine(const std::string& policy, const std::vector<ComparedRun>& runs) {
  ComparedPolicy all{.policy = policy};
  double log_time = 0;
  for (const ComparedRun& run : runs) {
    if (run.policy != policy || run.summary.is_null()) continue;
    const json& summary = run.summary;
    if (all.runs++ == 0) {
      all.first_batches = summary.value("first_batches", std::vector<int>());
      all.last_batches = summary.value("last_batches", std::vector<int>());
    }
    all.reached += summary.value("reached", false) ? 1 : 0;
    const double time_s = std::max(1e-9, NumberOf(summary, "time_to_target_s"));
    log_time += std::log(time_s);
    all.shortest_s = all.runs == 1 ? time_s : std::min(all.shortest_s, time_s);
    all.longest_s = std::max(all.longest_s, time_s);
    all.summaries[run.seed] = summary;
    all.accuracy += NumberOf(summary, "accuracy");
    all.loss += NumberOf(summary, "loss");
    all.has_target = summary.value("has_target", true);
    all.by_loss = !IsMissing(NumberOf(summary, "target_loss"));
    all.samples += NumberOf(summary, "samples");
    all.wait_share += NumberOf(summary, "mean_wait_share");
    all.iteration_ms += NumberOf(summary, "iteration_ms");
    all.overhead_share += NumberOf(summary, "overhead_share");
  }
  if (all.runs == 0) return all;
  all.time_s = std::exp(log_time / all.runs);
  for (double* sum : {&all.accuracy, &all.loss, &all.samples, &all.wait_share, &all.iteration_ms,
                      &all.overhead_share})
    *sum /= all.runs;
  return all;
}

std::string BatchText(const std::vector<int>& batches) {
  if (batches.size() > 8)
    return "sum " + std::to_string(std::accumulate(batches.begin(), batches.end(), 0));
  std::string text;
  for (const int batch : batches) text += (text.empty() ? "" : ",") + std::to_string(batch);
  return text;
}

std::string Percent(double share, int digits) {
  return IsMissing(share) ? "-" : Fixed(100 * share, digits) + " %";
}

bool ReachedAlways(const ComparedPolicy& policy) {
  return policy.runs > 0 && policy.reached == policy.runs;
}

std::string Seconds(const ComparedPolicy& policy) {
  if (!policy.has_target) return "none, ran " + Fixed(policy.time_s, 1) + " s";
  return (ReachedAlways(policy) ? "" : "> ") + Fixed(policy.time_s, 1) + " s";
}

std::string SeedsText(const ComparedPolicy& policy) {
  return std::to_string(policy.runs) + (policy.runs == 1 ? " seed" : " seeds");
}

// "24 % less time than static (36.8 s)"; runs that missed the target are a lower bound, and none
// when they ended before the winner was there.
std::string LessTime(const ComparedPolicy& winner, const ComparedPolicy& other) {
  const double less = 100 * (1 - winner.time_s / other.time_s);
  if (!ReachedAlways(other) && less <= 0)
    return "which " + other.policy + " missed in " + std::to_string(other.runs - other.reached) +
           " of " + SeedsText(other);
  return (ReachedAlways(other) ? "" : "at least ") + Fixed(less, 0) + " % less time than " +
         other.policy + " (" + Seconds(other) + ")";
}

std::string MoreAccuracy(const ComparedPolicy& winner, const ComparedPolicy& other) {
  return Fixed(100 * (winner.accuracy - other.accuracy), 2) + " points above " + other.policy +
         " (" + Fixed(other.accuracy, 4) + ")";
}

std::string LessLoss(const ComparedPolicy& winner, const ComparedPolicy& other) {
  return Fixed(other.loss - winner.loss, 3) + " below " + other.policy + " (" +
         Fixed(other.loss, 3) + ")";
}

enum class Lead { kClear, kUnclear, kOneSeed };

// Whether chance explains that `winner` is ahead of `other` by the figure of that name.
Lead LeadOf(const ComparedPolicy& winner, const ComparedPolicy& other, const char* figure) {
  // 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom; 2 beyond is close enough.
  constexpr double kT[] = {12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  const bool time = std::string_view(figure) == "time_to_target_s";
  std::vector<double> differences;
  for (const auto& [seed, summary] : winner.summaries) {
    const auto paired = other.summaries.find(seed);
    if (paired == other.summaries.end()) continue;
    const double own = NumberOf(summary, figure), others = NumberOf(paired->second, figure);
    differences.push_back(time ? std::log(std::max(1e-9, own) / std::max(1e-9, others))
                               : own - others);
  }
  const auto n = static_cast<double>(differences.size());
  if (n < 2) return Lead::kOneSeed;
  const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / n;
  double squares = 0;
  for (const double d : differences) squares += (d - mean) * (d - mean);
  const std::size_t freedom = differences.size() - 1;
  const double t = freedom <= std::size(kT) ? kT[freedom - 1] : 2;
  return std::abs(mean) > t * std::sqrt(squares / (n - 1) / n) ? Lead::kClear : Lead::kUnclear;
}

std::string Sentence(const std::string& what, const std::vector<ComparedPolicy>& ranked,
                     const std::string& baseline,
                     std::string (*against)(const ComparedPolicy&, const ComparedPolicy&),
                     const char* figure) {
  const ComparedPolicy& winner = ranked.front();
  const Lead lead = ranked.size() > 1 ? LeadOf(winner, ranked[1], figure) : Lead::kClear;
  std::string text = winner.policy + " won: " + what;
  if (lead == Lead::kUnclear)
    text = "no clear winner: " + SeedsText(winner) + " do not tell " + winner.policy + " and " +
           ranked[1].policy + " apart; " + winner.policy + " was ahead: " + what;
  const auto base = std::find_if(ranked.begin(), ranked.end(), [&](const ComparedPolicy& policy) {
    return policy.policy == baseline;
  });
  std::vector<std::string> parts;
  if (base != ranked.end() && base != ranked.begin()) parts.push_back(against(winner, *base));
  if (ranked.size() > 1 && ranked[1].policy != baseline)
    parts.push_back(against(winner, ranked[1]) + ", the next best");
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? ", " : " and ") + parts[i];
  return text + (lead == Lead::kOneSeed ? ". One seed: it may have been chance." : ".");
}

}  // namespace

std::vector<ComparedPolicy> ComparePolicies(const std::vector<ComparedRun>& runs) {
  std::vector<ComparedPolicy> policies;
  for (const ComparedRun& run : runs) {
    const bool known = std::any_of(policies.begin(), policies.end(),
                                   [&](const ComparedPolicy& p) { return p.policy == run.policy; });
    if (!known) policies.push_back(Combine(run.policy, runs));
  }
  return policies;
}

std::string ComparisonTable(const std::vector<ComparedPolicy>& policies, std::size_t width) {
  const bool by_loss = std::any_of(policies.begin(), policies.end(),
                                   [](const ComparedPolicy& policy) { return policy.by_loss; });
  Table table({"policy", "time to target", by_loss ? "loss" : "accuracy", "samples", "wait",
               "iteration", "batches at the start", "at the end", "overhead"});
  for (const ComparedPolicy& policy : policies) {
    if (policy.runs == 0) {
      table.Add({policy.policy, "failed", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    table.Add({policy.policy, Seconds(policy),
               by_loss ? Fixed(policy.loss, 3) : Fixed(policy.accuracy, 4),
               Fixed(policy.samples, 0), Percent(policy.wait_share, 1),
               Fixed(policy.iteration_ms, 1) + " ms", BatchText(policy.first_batches),
               BatchText(policy.last_batches), Percent(policy.overhead_share, 2)});
  }
  return table.Text(width);
}

std::string Verdict(const std::vector<ComparedPolicy>& policies, bool by_quality) {
  if (policies.empty()) return "Nothing was compared.";
  const std::string baseline = policies.front().policy;
  std::vector<ComparedPolicy> ranked;
  std::copy_if(policies.begin(), policies.end(), std::back_inserter(ranked),
               [](const ComparedPolicy& policy) { return policy.runs > 0; });
  if (ranked.empty()) return "Every run failed.";
  if (!by_quality && std::any_of(ranked.begin(), ranked.end(), ReachedAlways)) {
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const ComparedPolicy& a, const ComparedPolicy& b) {
                       if (ReachedAlways(a) != ReachedAlways(b)) return ReachedAlways(a);
                       return a.time_s < b.time_s;
                     });
    return Sentence("the target in " + Seconds(ranked.front()), ranked, baseline, LessTime,
                    "time_to_target_s");
  }
  const bool by_loss = ranked.front().by_loss, has_target = ranked.front().has_target;
  if (IsMissing(by_loss ? ranked.front().loss : ranked.front().accuracy))
    return "Nothing tells the runs apart: no target, and no accuracy on held-out data, was named.";
  std::stable_sort(ranked.begin(), ranked.end(),
                   [by_loss](const ComparedPolicy& a, const ComparedPolicy& b) {
                     return by_loss ? a.loss < b.loss : a.accuracy > b.accuracy;
                   });
  const std::string what = by_loss ? "loss" : "accuracy";
  const std::string first = by_quality ? ""
                            : !has_target
                                ? "No target was named. By " + what + ", "
                                : "Nobody reached the target in every run. By " + what + ", ";
  const ComparedPolicy& winner = ranked.front();
  const std::string value = by_loss ? Fixed(winner.loss, 3) : Fixed(winner.accuracy, 4);
  return first + Sentence(what + " " + value, ranked, baseline, by_loss ? LessLoss : MoreAccuracy,
                          by_loss ? "loss" : "accuracy");
}

json ComparisonJson(const std::vector<ComparedPolicy>& policies,
                    const std::vector<ComparedRun>& runs) {
  json table = json::array(), all = json::array();
  for (const ComparedPolicy& policy : policies)
    table.push_back({{"policy", policy.policy},
                     {"runs", policy.runs},
                     {"reached", policy.reached},
                     {"time_to_target_s", policy.time_s},
                     {"shortest_s", policy.shortest_s},
                     {"longest_s", policy.longest_s},
                     {"accuracy", policy.accuracy},
                     {"loss", IsMissing(policy.loss) ? json() : json(policy.loss)},
                     {"samples", policy.samples},
                     {"mean_wait_share", policy.wait_share},
                     {"iteration_ms", policy.iteration_ms},
                     {"overhead_share",
                      IsMissing(policy.overhead_share) ? json() : json(policy.overhead_share)}});
  for (const ComparedRun& run : runs)
    all.push_back({{"policy", run.policy}, {"seed", run.seed}, {"summary", run.summary}});
  return {{"policies", table}, {"runs", all}};
}

}  // namespace dynamix
