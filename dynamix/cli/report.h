// A report: one self-contained HTML page of runs of the same job. No scripts, nothing from outside;
// readable on a phone, in light, dark and print.
#pragma once

#include <string>
#include <vector>

#include "dynamix/cli/run_record.h"

namespace dynamix {

struct ReportPage {
  std::string title;            // empty: from the first run
  std::string table;            // preformatted text; empty: none
  std::vector<RunRecord> runs;  // at least one
};

std::string RenderReport(const ReportPage& page);

// Throws std::runtime_error when the file cannot be written.
void WriteReport(const std::string& path, const ReportPage& page);

}  // namespace dynamix
