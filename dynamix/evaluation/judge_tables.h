// What a judgement says: sentences and tables for people, JSON for machines, and the file that holds
// a suite's results and who looked at it when. All but WriteJudgement are pure.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dynamix/evaluation/judge.h"
#include "dynamix/evaluation/statistics.h"

namespace dynamix {

// What the policies are measured against: static, and the best rule for all jobs (BestOf) when there
// is a rule besides static. Every judgement has static.
struct Baselines {
  std::string best_rule;  // empty: none
  std::vector<std::string> names() const;
};
Baselines BaselinesOf(const Judgement& judgement);

// One policy against static on the jobs that have a value of a factor.
struct BreakdownRow {
  std::string value;
  int jobs = 0;
  std::vector<Comparison> comparisons;  // one per policy but static
};
struct Breakdown {
  std::string factor;
  std::vector<std::string> policies;
  std::vector<BreakdownRow> rows;  // in order of first appearance among the sorted values
};
// By rule, start, cluster, workers and model.
std::vector<Breakdown> BreakDown(const Judgement& judgement);

// One sentence per policy: faster, slower or no clear difference, and the worst job.
std::string JudgeVerdict(const Judgement& judgement);
// Summary table, breakdowns, legend.
std::string JudgeTables(const Judgement& judgement);
// Verdict and tables.
std::string JudgeText(const Judgement& judgement);
// The jobs and their factors, without results.
std::string JobsText(const std::vector<PopulationJob>& jobs);

// `date`: when it was made, e.g. 2026-11-16T12:00:00Z.
nlohmann::json JudgeJson(const Judgement& judgement, const std::string& date);

// Writes the JSON to `path`, with "looks": every policy that was ever judged into this file, by name,
// checksum, version, number of jobs and date of its first look. Looks that the file holds already
// stay. A judgement of some jobs only, or of shortened ones, leaves the results that are there and
// adds its looks. Throws std::runtime_error when the file cannot be read or written.
nlohmann::json WriteJudgement(const std::filesystem::path& path, const Judgement& judgement,
                              const std::string& date);

}  // namespace dynamix
