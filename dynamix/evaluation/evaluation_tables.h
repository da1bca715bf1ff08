// Tables and JSON of `dynamix evaluate`: pure functions of the results.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dynamix/evaluation/evaluation.h"
#include "dynamix/evaluation/statistics.h"
#include "dynamix/job/workload.h"

namespace dynamix {

// One line per policy: its times over those of each baseline with intervals, wins, ties and losses
// and the worst job against the first baseline, how often it reached the target, and accuracy and
// loss at equal time and epochs. Not every static size. `baselines` is not empty.
std::string SummaryTable(const std::string& title, const std::vector<JobResult>& results,
                         const std::vector<std::string>& baselines);
// The same for machines: {policy: {"vs_BASELINE": {...}, "equal": {...}, "reached"}}.
nlohmann::json PolicySummaries(const std::vector<JobResult>& results,
                               const std::vector<std::string>& baselines);
nlohmann::json ComparisonSummary(const Comparison& comparison);
nlohmann::json ResultJson(const JobResult& result);

// "quadratics" or "miniatures": the heading a simulated workload belongs to.
std::string EngineOf(const Workload& workload);

// `engine`: of each workload's name.
std::string SimulatedTables(const std::vector<JobResult>& results,
                            const std::map<std::string, std::string>& engine);
// Real SGD: seconds as well as ratios, every static size, one summary per workload.
std::string VirtualTables(const std::vector<JobResult>& results);

nlohmann::json EvaluationJson(const std::vector<JobResult>& results);

}  // namespace dynamix
