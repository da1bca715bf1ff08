#include "dynamix/record/run_table.h"

#include <charconv>

#include "dynamix/core/features.h"
#include "dynamix/core/report_fields.h"

namespace dynamix {
namespace {

// The shortest text that reads back as the same number; empty: missing.
std::string Cell(double value) {
  if (IsMissing(value)) return "";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
std::string Cell(NetworkTier tier) { return std::to_string(static_cast<int>(tier)); }
std::string Cell(std::int64_t value) { return std::to_string(value); }
std::string Cell(int value) { return std::to_string(value); }

std::string NameOf(const ReportField& field) {
  return (*field.section == '\0' ? "" : std::string(field.section) + ".") + field.name;
}

// Columns of a row of states; empty cells for a record of another list of features.
void AddStates(const std::vector<float>& states, std::size_t row, std::size_t width,
               std::size_t rows, std::vector<std::string>& cells) {
  const bool known = states.size() == rows * width;
  for (std::size_t i = 0; i < width; ++i)
    cells.push_back(known ? Cell(states[row * width + i]) : "");
}

}  // namespace

std::vector<std::string> TableColumns() {
  std::vector<std::string> columns = {"run",     "policy",         "seed",     "round",
                                      "seconds", "window_seconds", "accuracy", "loss",
                                      "guard",   "worker",         "batch",    "size"};
  const Report any;
  VisitMeasurements(
      any, [&](const ReportField& field, const auto&) { columns.push_back(NameOf(field)); });
  for (const Column& column : TeamColumns())
    columns.push_back("team_state." + std::string(column.name));
  for (const Column& column : LocalColumns())
    columns.push_back("local_state." + std::string(column.name));
  return columns;
}

std::int64_t WriteRows(const RunRecord& run, std::ostream& out) {
  std::int64_t rows = 0;
  const std::size_t team = TeamColumns().size(), local = LocalColumns().size();
  for (const RecordedRound& round : run.rounds) {
    for (std::size_t w = 0; w < round.workers.size(); ++w) {
      std::vector<std::string> cells = {run.name,
                                        round.policy.empty() ? run.config.policy : round.policy,
                                        std::to_string(run.config.job.seed),
                                        Cell(round.index),
                                        Cell(round.seconds),
                                        Cell(round.window_seconds),
                                        Cell(round.accuracy),
                                        Cell(round.loss),
                                        round.guarded ? "1" : "0",
                                        std::to_string(w),
                                        std::to_string(round.batches[w]),
                                        w < round.sizes.size() ? Cell(round.sizes[w]) : ""};
      VisitMeasurements(round.workers[w], [&](const ReportField&, const auto& value) {
        cells.push_back(round.workers[w].iterations > 0 ? Cell(value) : "");
      });
      AddStates(round.team_state, 0, team, 1, cells);
      AddStates(round.local_states, w, local, round.workers.size(), cells);
      WriteRow(cells, out);
      ++rows;
    }
  }
  return rows;
}

void WriteRow(const std::vector<std::string>& cells, std::ostream& out) {
  const char* separator = "";
  for (const std::string& cell : cells) {
    out << separator;
    separator = ",";
    if (cell.find_first_of(",\"\n") == std::string::npos) {
      out << cell;
      continue;
    }
    out << '"';
    for (const char c : cell) out << (c == '"' ? "\"\"" : std::string(1, c));
    out << '"';
  }
  out << '\n';
}

}  // namespace dynamix
