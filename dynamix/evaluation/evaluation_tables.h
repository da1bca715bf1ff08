// Tables and JSON of `dynamix evaluate`: pure functions of the results.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dynamix/evaluation/evaluation.h"
#include "dynamix/job/workload.h"

namespace dynamix {

// "quadratics" or "miniatures": the heading a simulated workload belongs to.
std::string EngineOf(const Workload& workload);

// `engine`: of each workload's name.
std::string SimulatedTables(const std::vector<JobResult>& results,
                            const std::map<std::string, std::string>& engine);
// Real SGD: seconds as well as ratios, every static size, one summary per workload.
std::string VirtualTables(const std::vector<JobResult>& results);

nlohmann::json EvaluationJson(const std::vector<JobResult>& results);

}  // namespace dynamix
