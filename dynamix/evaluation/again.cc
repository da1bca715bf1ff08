#include "dynamix/evaluation/again.h"

#include <algorithm>

#include "dynamix/core/check.h"
#include "dynamix/evaluation/evaluation_tables.h"
#include "dynamix/evaluation/table.h"

namespace dynamix {
namespace {

// Far beyond the seeds of all populations (population.cc), so that no job is another one's seed.
constexpr std::uint64_t kSeedStride = 1'000'003;

const PolicySpec& Judged(const std::vector<PolicySpec>& policies, const std::string& name) {
  const auto found = std::find_if(policies.begin(), policies.end(),
                                  [&](const PolicySpec& policy) { return policy.name == name; });
  DYNAMIX_CHECK(found != policies.end(), "a policy that was judged");
  return *found;
}

AgainRow RowOf(const std::string& job, const std::string& policy,
               const std::vector<JobResult>& results) {
  std::vector<JobResult> own;
  for (const JobResult& r : results)
    if (r.scenario == job) own.push_back(r);
  AgainRow row{.job = job, .comparison = Compare(own, policy, "static")};
  for (const JobRatio& ratio : JobRatios(own, policy, "static")) row.ratios.push_back(ratio.ratio);
  for (const JobResult& r : own) {
    if (r.reached) continue;
    (r.policy == policy ? row.missed : row.static_missed) += 1;
  }
  return row;
}

std::string LeftOutText(const Again& again) {
  if (again.left_out == 0) return "";
  return " Left out: " + std::to_string(again.left_out) +
         " of these runs, because their reference learned too little to set a target.";
}

}  // namespace

std::vector<PopulationJob> LostJobs(const Judgement& judgement, const std::string& policy,
                                    double beyond) {
  std::vector<JobRatio> lost = JobRatios(judgement.results, policy, "static");
  std::erase_if(lost, [&](const JobRatio& one) { return one.ratio <= beyond; });
  std::stable_sort(lost.begin(), lost.end(),
                   [](const JobRatio& a, const JobRatio& b) { return a.ratio > b.ratio; });
  std::vector<PopulationJob> jobs;
  for (const JobRatio& one : lost)
    jobs.push_back(
        *std::find_if(judgement.jobs.begin(), judgement.jobs.end(),
                      [&](const PopulationJob& job) { return job.name() == one.scenario; }));
  return jobs;
}

std::vector<PopulationJob> WithOtherSeeds(const std::vector<PopulationJob>& jobs, int seeds) {
  std::vector<PopulationJob> drawn;
  for (const PopulationJob& job : jobs) {
    for (int k = 1; k <= seeds; ++k) {
      drawn.push_back(job);
      drawn.back().spec.seed += k * kSeedStride;
    }
  }
  return drawn;
}

Again RunAgain(Population population, const Judgement& judgement, const std::string& policy,
               int seeds, const std::vector<PolicySpec>& policies, const VirtualMaker& make,
               const JudgeOptions& options) {
  Again again{.policy = policy, .seeds = seeds};
  const std::vector<PopulationJob> lost = LostJobs(judgement, policy);
  if (lost.empty()) return again;
  const Judgement second =
      Judge(population, WithOtherSeeds(lost, seeds),
            {Judged(policies, "static"), Judged(policies, policy)}, make, options);
  again.left_out = static_cast<int>(second.left_out.size());
  for (const PopulationJob& job : lost)
    again.rows.push_back(RowOf(job.name(), policy, second.results));
  return again;
}

std::string AgainText(const Again& again) {
  const std::string beyond = Fixed(100 * (kLost - 1), 0) + " %";
  if (again.rows.empty()) return again.policy + " lost no job by more than " + beyond + ".\n";
  Table table({again.policy + " again, other seeds", "time / static's", "pace / static's", "missed",
               "static missed", "slower by more than " + beyond + "?"});
  int regretted = 0;
  for (const AgainRow& row : again.rows) {
    regretted += row.regretted() ? 1 : 0;
    table.Add({row.job, Text(row.comparison.ratio), Text(row.comparison.pace),
               std::to_string(row.missed) + " of " + std::to_string(row.ratios.size()),
               std::to_string(row.static_missed), row.regretted() ? "yes" : "not shown"});
  }
  return table.Text() + "Of " + std::to_string(again.rows.size()) + " jobs that " + again.policy +
         " lost by more than " + beyond + " in one run, " + std::to_string(regretted) +
         " are clearly slower by more than that with " + std::to_string(again.seeds) +
         " other seeds." + LeftOutText(again) + "\n";
}

nlohmann::json AgainJson(const Again& again) {
  nlohmann::json object = {{"policy", again.policy},
                           {"seeds", again.seeds},
                           {"left_out", again.left_out},
                           {"jobs", nlohmann::json::array()}};
  for (const AgainRow& row : again.rows)
    object["jobs"].push_back({{"name", row.job},
                              {"ratios", row.ratios},
                              {"missed", row.missed},
                              {"static_missed", row.static_missed},
                              {"regretted", row.regretted()},
                              {"vs_static", ComparisonSummary(row.comparison)}});
  return object;
}

}  // namespace dynamix
