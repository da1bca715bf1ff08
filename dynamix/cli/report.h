// A report: one self-contained HTML page with SVG charts of the same job under several policies. No
// scripts, no network; readable in light, dark and print.
#pragma once

#include <string>
#include <vector>

namespace dynamix {

// One policy's course through the job, one entry per window.
struct Trace {
  std::string policy;
  std::vector<double> seconds;            // end of the window
  std::vector<double> accuracy;           // held-out
  std::vector<std::vector<int>> batches;  // per window, per worker
};

struct ReportPage {
  std::string title;
  std::string description;  // of the cluster and the workload
  std::string table;        // preformatted text
  std::vector<Trace> traces;
};

std::string RenderReport(const ReportPage& page);

}  // namespace dynamix
