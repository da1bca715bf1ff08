// The page of runs: one self-contained HTML page of runs of the same job. Its content-security policy
// allows the page's own script and nothing from outside; readable on a phone, in light and dark.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dynamix/ppo/policy_file.h"
#include "dynamix/record/run_record.h"

namespace dynamix {

// The model of a learned policy as the user named it; nothing for a rule or a file that is gone.
using FindModelFunction = std::function<std::optional<PolicyModel>(const std::string& policy)>;

struct Page {
  std::string title;             // empty: from the first run
  std::string table;             // preformatted text; empty: none
  std::string verdict;           // who won; empty: by time to target
  std::vector<RunRecord> runs;   // at least one
  FindModelFunction find_model;  // explains decisions
};

// Throws InputError naming two runs that differ in workload, cluster, workers, backend or target.
void RequireSameJob(const std::vector<RunRecord>& runs);

std::string RenderPage(const Page& page);

// Throws std::runtime_error when the file cannot be written.
void WritePage(const std::string& path, const Page& page);

}  // namespace dynamix
