// A report as JSON: an object with every field of core/report_fields.h under its name, sections as
// inner objects, null for what was not measured. The window is not in it: the line around it says
// which round it is. Pure functions.
#pragma once

#include <nlohmann/json.hpp>

#include "dynamix/core/report.h"

namespace dynamix {

nlohmann::json ReportJson(const Report& report);

// Measurements that are absent (an older record) are missing. Throws nlohmann::json::exception for
// a number that is none, and for a report that lacks its rank, iterations or batch.
Report ReadReportJson(const nlohmann::json& json, std::int64_t window);

}  // namespace dynamix
