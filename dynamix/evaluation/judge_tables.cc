#include "dynamix/evaluation/judge_tables.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

#include "dynamix/evaluation/evaluation_tables.h"
#include "dynamix/evaluation/pace.h"
#include "dynamix/evaluation/table.h"
#include "dynamix/host/atomic_file.h"

namespace dynamix {
namespace {

using nlohmann::json;

constexpr std::array kShownFactors = {"rule", "start", "cluster", "workers", "model"};

constexpr const char* kJudgeLegend =
    "Ratios of times to target on the same job, geometric means; below 1 is faster. In brackets: "
    "95 % intervals\nfrom a bootstrap over what is trained (docs/judge.md); one that holds 1 is no "
    "clear difference. A missed\ntarget counts with the whole time budget, 4 reference times. "
    "Within 2 % is a tie. Equal time: when the\njob's first policy reached the target; equal "
    "epochs likewise, by samples. Pace: the mean\nratio of times to the same held-out losses on "
    "the "
    "way, which hangs less on luck than one target.\n";

std::string FactorOf(const PopulationJob& job, const std::string& factor) {
  for (const auto& [name, value] : Factors(job))
    if (name == factor) return value;
  return {};
}

// Numbers by size, words by letter.
struct ByValue {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::pair(std::atoi(a.c_str()), a) < std::pair(std::atoi(b.c_str()), b);
  }
};

std::vector<std::string> OtherPolicies(const Judgement& judgement) {
  std::vector<std::string> names;
  for (const JudgedPolicy& policy : judgement.policies)
    if (policy.name != "static") names.push_back(policy.name);
  return names;
}

Breakdown BreakDownBy(const Judgement& judgement, const std::string& factor) {
  Breakdown breakdown{.factor = factor, .policies = OtherPolicies(judgement)};
  std::map<std::string, std::set<std::string>, ByValue> jobs;  // names by value
  for (const PopulationJob& job : judgement.jobs) jobs[FactorOf(job, factor)].insert(job.name());
  for (const auto& [value, names] : jobs) {
    std::vector<JobResult> chosen;
    for (const JobResult& r : judgement.results)
      if (names.contains(r.scenario)) chosen.push_back(r);
    BreakdownRow row{.value = value, .jobs = static_cast<int>(names.size())};
    for (const std::string& policy : breakdown.policies)
      row.comparisons.push_back(Compare(chosen, policy, "static"));
    breakdown.rows.push_back(std::move(row));
  }
  return breakdown;
}

std::string BreakdownText(const Breakdown& breakdown) {
  std::vector<std::string> header = {"time / static's, by " + breakdown.factor, "jobs"};
  header.insert(header.end(), breakdown.policies.begin(), breakdown.policies.end());
  Table table(header);
  for (const BreakdownRow& row : breakdown.rows) {
    std::vector<std::string> cells = {row.value, std::to_string(row.jobs)};
    for (const Comparison& comparison : row.comparisons) cells.push_back(Text(comparison.ratio));
    table.Add(cells);
  }
  return table.Text() + "\n";
}

json BreakdownJson(const Breakdown& breakdown) {
  json values = json::object();
  for (const BreakdownRow& row : breakdown.rows)
    for (const Comparison& comparison : row.comparisons)
      values[row.value][comparison.policy] = ComparisonSummary(comparison);
  return values;
}

json JobJson(const PopulationJob& job, const JobTarget& target,
             const std::vector<JobResult>& results) {
  json object = {{"name", job.name()},
                 {"seed", job.spec.seed},
                 {"exchange_over_compute", job.exchange_ratio},
                 {"start_over_base", job.start_scale},
                 {"reference_s", target.reference_s},
                 {"reference_samples", target.reference_samples},
                 {"budget_s", target.budget_s}};
  object[job.target_is_loss ? "target_loss" : "target_accuracy"] =
      job.target_is_loss ? target.loss : target.accuracy;
  for (const auto& [factor, value] : Factors(job)) object["factors"][factor] = value;
  const auto still = std::find_if(results.begin(), results.end(), [&](const JobResult& r) {
    return r.scenario == job.name() && r.policy == "static";
  });
  for (const JobResult& r : results) {
    if (r.scenario != job.name()) continue;
    json result = ResultJson(r);
    if (still != results.end())
      if (const auto log = LogPace(r.curve, still->curve))
        result["pace_over_static"] = std::exp(*log);
    object["results"].push_back(std::move(result));
  }
  return object;
}

json ChecksumJson(const JudgedPolicy& policy) {
  return policy.checksum.empty() ? json() : json(policy.checksum);
}

// The looks of a results file; none when there is no file.
json LooksIn(const json& file) { return file.is_object() ? file.at("looks") : json::array(); }

json ReadResults(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return {};
  std::ifstream file(path);
  const json found = json::parse(file, nullptr, /*allow_exceptions=*/false);
  const bool whole = found.is_object() && found.contains("looks") && found["looks"].is_array() &&
                     std::all_of(found["looks"].begin(), found["looks"].end(),
                                 [](const json& look) { return look.is_object(); });
  if (!whole)
    throw std::runtime_error(path.string() +
                             " is damaged, and with it the record of who was judged when: mend or "
                             "move it");
  return found;
}

void AddLooks(const Judgement& judgement, const std::string& date, json& looks) {
  for (const JudgedPolicy& policy : judgement.policies) {
    json look = {{"policy", policy.name},
                 {"checksum", ChecksumJson(policy)},
                 {"version", judgement.version},
                 {"jobs", judgement.jobs.size()},
                 {"whole", judgement.whole}};
    const bool known = std::any_of(looks.begin(), looks.end(), [&](json old) {
      old.erase("date");
      return old == look;
    });
    if (known) continue;
    look["date"] = date;
    looks.push_back(std::move(look));
  }
}

std::string Sentence(const Comparison& comparison) {
  return Text(comparison.ratio) + " of " + comparison.baseline +
         "'s time: " + Verdict(comparison.ratio) + " (" + std::to_string(comparison.wins) +
         " won, " + std::to_string(comparison.ties) + " tied, " +
         std::to_string(comparison.losses) + " lost)";
}

// As its authors meant it: without a guard, on the schedule's own clock.
bool IsPlainRule(const JudgedPolicy& policy) {
  const auto begins = [&](std::string_view prefix) { return policy.name.starts_with(prefix); };
  return policy.checksum.empty() && !begins("static") && !begins(kGuardedPrefix) &&
         !begins(kStepsPrefix);
}

}  // namespace

std::vector<std::string> Baselines::names() const {
  std::vector<std::string> names = {"static"};
  if (!best_rule.empty()) names.push_back(best_rule);
  return names;
}

Baselines BaselinesOf(const Judgement& judgement) {
  std::vector<std::string> rules;
  for (const JudgedPolicy& policy : judgement.policies)
    if (IsPlainRule(policy)) rules.push_back(policy.name);
  return {.best_rule = rules.empty() ? "" : BestOf(judgement.results, rules)};
}

std::vector<Breakdown> BreakDown(const Judgement& judgement) {
  std::vector<Breakdown> breakdowns;
  for (const char* factor : kShownFactors) breakdowns.push_back(BreakDownBy(judgement, factor));
  return breakdowns;
}

std::string JudgeVerdict(const Judgement& judgement) {
  const std::string best_rule = BaselinesOf(judgement).best_rule;
  std::string text;
  for (const std::string& policy : OtherPolicies(judgement)) {
    const Comparison against_static = Compare(judgement.results, policy, "static");
    text += policy + ": " + Sentence(against_static) + ".";
    if (!best_rule.empty() && policy != best_rule)
      text += " Of the best rule: " + Sentence(Compare(judgement.results, policy, best_rule)) + ".";
    text += " Worst against static: " + Fixed(against_static.worst_ratio, 2) + " in " +
            against_static.worst_job + ".\n";
  }
  return text;
}

std::string JudgeText(const Judgement& judgement) {
  return JudgeVerdict(judgement) + "\n" + JudgeTables(judgement);
}

std::string JudgeTables(const Judgement& judgement) {
  std::string text =
      SummaryTable(judgement.suite + ", " + std::to_string(judgement.jobs.size()) + " jobs, time",
                   judgement.results, BaselinesOf(judgement).names());
  for (const Breakdown& breakdown : BreakDown(judgement)) text += BreakdownText(breakdown);
  for (const std::string& job : judgement.left_out)
    text += job + " is left out: its reference run learned too little to set a target.\n";
  return text + kJudgeLegend;
}

std::string JobsText(const std::vector<PopulationJob>& jobs) {
  std::vector<std::string> header = {"job"};
  for (const auto& [factor, value] : Factors(jobs.front())) header.push_back(factor);
  header.insert(header.end(), {"start / base", "exchange / compute"});
  Table table(header);
  for (const PopulationJob& job : jobs) {
    std::vector<std::string> row = {job.name()};
    for (const auto& [factor, value] : Factors(job)) row.push_back(value);
    row.push_back(Fixed(job.start_scale, job.start_scale < 1 ? 4 : 0));
    row.push_back(Fixed(job.exchange_ratio, 2));
    table.Add(row);
  }
  return table.Text();
}

json JudgeJson(const Judgement& judgement, const std::string& date) {
  const Baselines baselines = BaselinesOf(judgement);
  json object = {{"suite", judgement.suite},
                 {"date", date},
                 {"version", judgement.version},
                 {"whole", judgement.whole},
                 {"best_rule", baselines.best_rule},
                 {"verdict", JudgeVerdict(judgement)},
                 {"summary", PolicySummaries(judgement.results, baselines.names())},
                 {"left_out", judgement.left_out}};
  for (const JudgedPolicy& policy : judgement.policies)
    object["policies"].push_back({{"name", policy.name}, {"checksum", ChecksumJson(policy)}});
  for (const Breakdown& breakdown : BreakDown(judgement))
    object["breakdown"][breakdown.factor] = BreakdownJson(breakdown);
  for (std::size_t i = 0; i < judgement.jobs.size(); ++i)
    object["jobs"].push_back(JobJson(judgement.jobs[i], judgement.targets[i], judgement.results));
  return object;
}

json WriteJudgement(const std::filesystem::path& path, const Judgement& judgement,
                    const std::string& date) {
  const json before = ReadResults(path);
  json looks = LooksIn(before);
  AddLooks(judgement, date, looks);
  json result = JudgeJson(judgement, date);
  result["looks"] = looks;
  json kept = judgement.whole || before.is_null() ? result : before;
  kept["looks"] = looks;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  if (const Status written = WriteBytes(path.string(), kept.dump(1) + "\n"); !written)
    throw std::runtime_error(written.error());
  return result;
}

}  // namespace dynamix
