// What dynamix monitor prints of one window. Pure functions; any thread; nothing fails.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dynamix/monitor/monitor.h"

namespace dynamix {

// One worker and what it did in the window.
using WorkerWindow = std::pair<std::string, MonitorWindow>;

// One row per worker; "-" is what was not measured.
std::string MonitorTable(const std::vector<WorkerWindow>& workers);

// One object per worker, docs/monitor.md names the fields; null is what was not measured.
nlohmann::json MonitorJson(const WorkerWindow& worker, double unix_seconds);

}  // namespace dynamix
