#include "dynamix/evaluation/evaluation_tables.h"

#include <algorithm>
#include <cmath>
#include <set>

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
  const Interval ratio = CompareTimes(results, policy, "static");
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
std::vector<std::string> Baselines(const std::vector<JobResult>& results) {
  const std::vector<std::string> names = PolicyNames(results);
  std::vector<std::string> baselines = {"static",    "best_static",   "balanced",
                                        "base",      "noise_scale",   "goodput",
                                        "composite", "best_constant", "clairvoyant"};
  std::erase_if(baselines, [&](const std::string& baseline) {
    return std::find(names.begin(), names.end(), baseline) == names.end();
  });
  return baselines;
}

std::string SummaryText(const std::string& title, const std::vector<JobResult>& results) {
  const std::vector<std::string> baselines = Baselines(results);
  std::vector<std::string> header = {title};
  for (const std::string& baseline : baselines) header.push_back("/ " + baseline);
  header.insert(header.end(), {"reached", "accuracy"});
  Table table(header);
  for (const std::string& policy : ShownPolicies(results)) {
    std::vector<std::string> row = {policy};
    for (const std::string& baseline : baselines) {
      const Interval ratio = CompareTimes(results, policy, baseline);
      row.push_back(ratio.jobs == 0 ? "-"
                                    : Fixed(ratio.mean, 3) + " [" + Fixed(ratio.low, 2) + "," +
                                          Fixed(ratio.high, 2) + "]");
    }
    const auto own = Where(results, [&](const JobResult& r) { return r.policy == policy; });
    double reached = 0, accuracy = 0;
    for (const JobResult& r : own) {
      reached += r.reached;
      accuracy += r.final_accuracy;
    }
    row.push_back(Fixed(100 * reached / static_cast<double>(own.size()), 0) + " %");
    row.push_back(Fixed(accuracy / static_cast<double>(own.size()), 4));
    table.Add(row);
  }
  return table.Text() + "\n";
}

nlohmann::json ResultJson(const JobResult& r) {
  return {{"scenario", r.scenario},
          {"workload", r.workload},
          {"workers", r.workers},
          {"policy", r.policy},
          {"seed", r.seed},
          {"time_to_target_s", r.time_to_target_s},
          {"reached", r.reached},
          {"final_accuracy", r.final_accuracy},
          {"mean_wait_share", r.mean_wait_share}};
}

constexpr const char* kLegend =
    "Geometric means over jobs with 95 % intervals; below 1 is faster. A job that missed its "
    "target\n"
    "counts with its whole budget. best_static: the best static size in hindsight.\n";
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

}  // namespace

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
    if (!chosen.empty()) text += SummaryText("time ratio, " + name, chosen);
  }
  return text + kLegend + kBoundsLegend;
}

std::string VirtualTables(const std::vector<JobResult>& results) {
  const std::vector<std::string> columns = SizesAndPolicies(results);
  std::string text = GroupsText("seconds to target", columns, results, true, SecondsCell) +
                     GroupsText("time / static's", columns, results, true, RatioCell);
  std::set<std::string> workloads;
  for (const JobResult& r : results) workloads.insert(r.workload);
  for (const std::string& name : workloads) {
    const auto chosen = Where(results, [&](const JobResult& r) { return r.workload == name; });
    text += SummaryText("time ratio, " + name, chosen);
  }
  return text + kLegend + kVirtualLegend;
}

nlohmann::json EvaluationJson(const std::vector<JobResult>& results) {
  nlohmann::json list = nlohmann::json::array(), summary = nlohmann::json::object();
  for (const JobResult& r : results) list.push_back(ResultJson(r));
  for (const std::string& policy : ShownPolicies(results)) {
    for (const std::string& baseline : Baselines(results)) {
      const Interval ratio = CompareTimes(results, policy, baseline);
      if (ratio.jobs == 0) continue;
      summary[policy]["geomean_vs_" + baseline] = ratio.mean;
      summary[policy]["interval_vs_" + baseline] = {ratio.low, ratio.high};
    }
  }
  return {{"results", list}, {"summary", summary}};
}

}  // namespace dynamix
