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

// What rows can be ordered by: worker, sent, received, retransmissions, rtt, cpu, memory.
std::vector<std::string> MonitorOrders();

// One row per worker; "-" is what was not measured. `order` is one of MonitorOrders, largest value
// first (worker: by name). `width` as of Table::Text.
std::string MonitorTable(std::vector<WorkerWindow> workers, const std::string& order = "worker",
                         std::size_t width = 0);

// One object per worker, docs/monitor.md names the fields; null is what was not measured.
nlohmann::json MonitorJson(const WorkerWindow& worker, double unix_seconds);

}  // namespace dynamix
