#include "dynamix/evaluation/evaluation_tables.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "dynamix/evaluation/statistics.h"
#include "dynamix/evaluation/table.h"

namespace dynamix {
namespace {

std::vector<JobResult> Where(const std::vector<JobResult>& results, auto predicate) {
  std::vector<JobResult> chosen;
  std::copy_if(results.begin(), results.end(), std::back_inserter(chosen), predicate);
  return chosen;
}

bool IsStaticSize(const std::string& name) { return name.starts_with("static:"); }

// The policies worth a line: not every static size.
std::vector<std::string> ShownPolicies(const std::vector<JobResult>& results) {
  std::vector<std::string> names = PolicyNames(results);
  std::erase_if(names, IsStaticSize);
  return names;
}

// One row per scenario, workload and number of workers, a column per policy.
struct JobGroup {
  std::string scenario, workload;
  int workers;
  auto operator<=>(const JobGroup&) const = default;
  bool Holds(const JobResult& r) const {
    return r.scenario == scenario && (workload.empty() || r.workload == workload) &&
           r.workers == workers;
  }
  std::string Name() const {
    return scenario + (workload.empty() ? "" : ", " + workload) + " x" + std::to_string(workers);
  }
};

std::set<JobGroup> Groups(const std::vector<JobResult>& results, bool by_workload) {
  std::set<JobGroup> groups;
  for (const JobResult& r : results)
    groups.insert({r.scenario, by_workload ? r.workload : "", r.workers});
  return groups;
}

template <typename Cell>
std::string GroupsText(const std::string& title, const std::vector<std::string>& policies,
                       const std::vector<JobResult>& results, bool by_workload, Cell cell) {
  std::vector<std::string> header = {title};
  header.insert(header.end(), policies.begin(), policies.end());
  Table table(header);
  for (const JobGroup& group : Groups(results, by_workload)) {
    const auto chosen = Where(results, [&](const JobResult& r) { return group.Holds(r); });
    std::vector<std::string> row = {group.Name()};
    for (const std::string& policy : policies) row.push_back(cell(chosen, policy));
    table.Add(row);
  }
  return table.Text() + "\n";
}

std::string RatioCell(const std::vector<JobResult>& results, const std::string& policy) {
  const Interval ratio = Compare(results, policy, "static").ratio;
  return ratio.jobs > 0 ? Fixed(ratio.mean, 3) : "-";
}

// Geometric mean; a star when a job missed its target.
std::string SecondsCell(const std::vector<JobResult>& results, const std::string& policy) {
  double logs = 0, jobs = 0;
  bool missed = false;
  for (const JobResult& r : results) {
    if (r.policy != policy) continue;
    logs += std::log(r.time_to_target_s);
    missed |= !r.reached;
    ++jobs;
  }
  return jobs > 0 ? Fixed(std::exp(logs / jobs), 2) + (missed ? "*" : "") : "-";
}

// The baselines that were run.
std::vector<std::string> BaselinesIn(const std::vector<JobResult>& results) {
  const std::vector<std::string> names = PolicyNames(results);
  std::vector<std::string> baselines = {"static",    "best_static",   "balanced",
                                        "base",      "noise_scale",   "goodput",
                                        "composite", "best_constant", "clairvoyant"};
  std::erase_if(baselines, [&](const std::string& baseline) {
    return std::find(names.begin(), names.end(), baseline) == names.end();
  });
  if (baselines.empty()) baselines.push_back(names.front());
  return baselines;
}

constexpr const char* kSuiteLegend =
    "Geometric means over jobs with 95 % intervals over workloads; below 1 is faster, an interval "
    "that\nholds 1 says nothing. A job that missed its target counts with its whole time budget. "
    "Within 2 % is\na tie. Equal time: when the job's first policy reached its target; equal "
    "epochs likewise, by samples. Pace: the mean\nratio of times to the same held-out losses on "
    "the "
    "way, which hangs less on luck.\nbest_static: the best static size in hindsight, where one "
    "always reached the target.\n";
constexpr const char* kBoundsLegend =
    "best_constant: the best constant global batch in hindsight, with true balanced shares.\n"
    "clairvoyant: the best schedule found with full knowledge of the model and of future events.\n";
constexpr const char* kVirtualLegend =
    "Seconds are on the job's clock; a star: some jobs missed the target.\n";

// Policies in columns: the static sizes by size, after `static`.
std::vector<std::string> SizesAndPolicies(const std::vector<JobResult>& results) {
  std::vector<std::string> names = PolicyNames(results);
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const auto rank = [](const std::string& name) {
      return IsStaticSize(name) ? std::stoi(name.substr(7)) : name == "static" ? 0 : 1 << 30;
    };
    return rank(a) < rank(b);
  });
  return names;
}

std::string Percent(double share) { return Fixed(100 * share, 0) + " %"; }

std::string Record(const Comparison& comparison) {
  return std::to_string(comparison.wins) + "/" + std::to_string(comparison.ties) + "/" +
         std::to_string(comparison.losses);
}

// Those of the policies whose runs left a curve: hindsight bounds did not run.
std::vector<std::string> WithCurves(const std::vector<JobResult>& results,
                                    std::vector<std::string> policies) {
  std::erase_if(policies, [&](const std::string& policy) {
    return std::none_of(results.begin(), results.end(),
                        [&](const JobResult& r) { return r.policy == policy && !r.curve.empty(); });
  });
  return policies;
}

// Paces stand beside the first two baselines: a table of all is too wide to read.
std::ptrdiff_t PacedCount(const std::vector<std::string>& baselines) {
  return std::min<std::ptrdiff_t>(2, std::ssize(baselines));
}

nlohmann::json EqualJson(const EqualFigures& figures) {
  return {{"accuracy_at_equal_time", figures.accuracy_at_time},
          {"loss_at_equal_time", figures.loss_at_time},
          {"accuracy_at_equal_epochs", figures.accuracy_at_samples},
          {"loss_at_equal_epochs", figures.loss_at_samples},
          {"jobs", figures.jobs}};
}

}  // namespace

std::string SummaryTable(const std::string& title, const std::vector<JobResult>& results,
                         const std::vector<std::string>& baselines) {
  const std::vector<std::string> policies = ShownPolicies(results);
  std::map<std::string, EqualFigures> equal;
  for (const EqualFigures& own : CompareAtEqual(results, WithCurves(results, policies)))
    if (own.jobs > 0) equal[own.policy] = own;
  std::vector<std::string> header = {title};
  for (const std::string& baseline : baselines) header.push_back("/ " + baseline);
  const std::vector<std::string> paced(baselines.begin(),
                                       baselines.begin() + PacedCount(baselines));
  for (const std::string& baseline : paced) header.push_back("pace / " + baseline);
  header.insert(header.end(), {"won/tied/lost", "reached", "accuracy, equal time", "equal epochs",
                               "loss, equal time", "equal epochs"});
  Table table(header);
  std::string worst;
  for (const std::string& policy : policies) {
    std::vector<std::string> row = {policy};
    for (const std::string& baseline : baselines)
      row.push_back(policy == baseline ? "1" : Text(Compare(results, policy, baseline).ratio));
    for (const std::string& baseline : paced)
      row.push_back(policy == baseline ? "1" : Text(Compare(results, policy, baseline).pace));
    const Comparison first = Compare(results, policy, baselines.front());
    row.push_back(policy == baselines.front() ? "-" : Record(first));
    row.push_back(Percent(ReachedShare(results, policy)));
    const auto own = equal.find(policy);
    const bool known = own != equal.end();
    row.push_back(known ? Fixed(own->second.accuracy_at_time, 4) : "-");
    row.push_back(known ? Fixed(own->second.accuracy_at_samples, 4) : "-");
    row.push_back(known ? Fixed(own->second.loss_at_time, 4) : "-");
    row.push_back(known ? Fixed(own->second.loss_at_samples, 4) : "-");
    table.Add(row);
    if (policy == baselines.front() || first.ratio.jobs == 0) continue;
    worst += "  " + policy + " " + Fixed(first.worst_ratio, 2) + " in " + first.worst_job;
    if (first.pace.jobs > 0)
      worst += "; by pace " + Fixed(first.worst_pace, 2) + " in " + first.worst_pace_job;
    worst += "\n";
  }
  const std::string heading = "worst against " + baselines.front() + ":\n";
  return table.Text() + (worst.empty() ? "" : heading + worst) + "\n";
}

nlohmann::json ComparisonSummary(const Comparison& comparison) {
  return {{"geomean", comparison.ratio.mean},
          {"interval", {comparison.ratio.low, comparison.ratio.high}},
          {"verdict", Verdict(comparison.ratio)},
          {"jobs", comparison.ratio.jobs},
          {"workloads", comparison.ratio.workloads},
          {"wins", comparison.wins},
          {"ties", comparison.ties},
          {"losses", comparison.losses},
          {"worst_ratio", comparison.worst_ratio},
          {"worst_job", comparison.worst_job},
          {"pace",
           {{"geomean", comparison.pace.mean},
            {"interval", {comparison.pace.low, comparison.pace.high}},
            {"verdict", Verdict(comparison.pace)},
            {"jobs", comparison.pace.jobs},
            {"worst", comparison.worst_pace},
            {"worst_job", comparison.worst_pace_job}}}};
}

nlohmann::json PolicySummaries(const std::vector<JobResult>& results,
                               const std::vector<std::string>& baselines) {
  const std::vector<std::string> policies = ShownPolicies(results);
  nlohmann::json summaries = nlohmann::json::object();
  for (const std::string& policy : policies) {
    summaries[policy]["reached"] = ReachedShare(results, policy);
    for (const std::string& baseline : baselines) {
      const Comparison comparison = Compare(results, policy, baseline);
      if (comparison.ratio.jobs > 0)
        summaries[policy]["vs_" + baseline] = ComparisonSummary(comparison);
    }
  }
  for (const EqualFigures& own : CompareAtEqual(results, WithCurves(results, policies)))
    if (own.jobs > 0) summaries[own.policy]["equal"] = EqualJson(own);
  return summaries;
}

nlohmann::json ResultJson(const JobResult& r) {
  return {{"scenario", r.scenario},
          {"workload", r.workload},
          {"workers", r.workers},
          {"policy", r.policy},
          {"seed", r.seed},
          {"time_to_target_s", r.time_to_target_s},
          {"reached", r.reached},
          {"samples", r.samples},
          {"final_accuracy", r.final_accuracy},
          {"mean_wait_share", r.mean_wait_share}};
}

std::string EngineOf(const Workload& workload) {
  return workload.is_quadratic() ? "quadratics" : "miniatures";
}

std::string SimulatedTables(const std::vector<JobResult>& results,
                            const std::map<std::string, std::string>& engine) {
  std::string text =
      GroupsText("time / static's, by scenario", ShownPolicies(results), results, false, RatioCell);
  for (const std::string name : {"quadratics", "miniatures"}) {
    const auto chosen =
        Where(results, [&](const JobResult& r) { return engine.at(r.workload) == name; });
    if (!chosen.empty()) text += SummaryTable("time ratio, " + name, chosen, BaselinesIn(chosen));
  }
  return text + kSuiteLegend + kBoundsLegend;
}

std::string VirtualTables(const std::vector<JobResult>& results) {
  const std::vector<std::string> columns = SizesAndPolicies(results);
  std::string text = GroupsText("seconds to target", columns, results, true, SecondsCell) +
                     GroupsText("time / static's", columns, results, true, RatioCell);
  std::set<std::string> workloads;
  for (const JobResult& r : results) workloads.insert(r.workload);
  for (const std::string& name : workloads) {
    const auto chosen = Where(results, [&](const JobResult& r) { return r.workload == name; });
    text += SummaryTable("time ratio, " + name, chosen, BaselinesIn(chosen));
  }
  return text + kSuiteLegend + kVirtualLegend;
}

nlohmann::json EvaluationJson(const std::vector<JobResult>& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const JobResult& r : results) list.push_back(ResultJson(r));
  return {{"results", list}, {"summary", PolicySummaries(results, BaselinesIn(results))}};
}

}  // namespace dynamix
