// dynamix export: recorded runs as a table for other programs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dynamix/cli/commands.h"
#include "dynamix/record/run_table.h"

namespace dynamix {
namespace {

struct ExportFlags {
  std::vector<std::string> runs;
  std::string csv;  // file; -: stdout
  bool json = false;
};

std::int64_t Write(const ExportFlags& flags, std::ostream& out) {
  WriteRow(TableColumns(), out);
  std::int64_t rows = 0;
  for (const std::string& run : flags.runs) rows += WriteRows(LoadRun(run), out);
  out.flush();
  if (!out) throw std::runtime_error("cannot write " + flags.csv);
  return rows;
}

void Export(const ExportFlags& flags) {
  if (flags.csv == "-") {
    (void)Write(flags, std::cout);
    return;
  }
  std::ofstream file(flags.csv, std::ios::binary | std::ios::trunc);
  const std::int64_t rows = Write(flags, file);
  if (flags.json)
    std::printf("%s\n",
                nlohmann::json{{"file", flags.csv}, {"rows", rows}, {"columns", TableColumns()}}
                    .dump()
                    .c_str());
  else
    std::printf("%s: %lld rows\n", flags.csv.c_str(), static_cast<long long>(rows));
}

}  // namespace

void AddExportCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = app.add_subcommand("export", "Make a table of recorded runs");
  command->add_option("run", flags->runs, "folders of runs, or of an arbitrator's jobs")
      ->required();
  command
      ->add_option("--csv", flags->csv,
                   "file of comma-separated values, a row per round and worker; -: stdout")
      ->required();
  command->add_flag("--json", flags->json, "one JSON object on stdout: file, rows, columns");
  command->footer(
      "Example:\n"
      "  dynamix export runs/mine --csv mine.csv\n"
      "  dynamix export runs/compare-*/* --csv - | head");
  command->callback([flags] { Export(*flags); });
}

}  // namespace dynamix
