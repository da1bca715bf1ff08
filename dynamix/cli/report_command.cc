// dynamix report: run folders to one HTML page.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/find_policy.h"
#include "dynamix/core/input_error.h"
#include "dynamix/page/page.h"

namespace dynamix {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out, title;
  std::string rounds;  // where an arbitrator recorded them
  bool json = false;
};

void MakeReport(const ReportFlags& flags) {
  Page page{.title = flags.title, .find_model = FindModel};
  if (!flags.rounds.empty() && flags.runs.size() != 1)
    throw InputError("--rounds is for one run, not for " + std::to_string(flags.runs.size()));
  for (const std::string& folder : flags.runs) page.runs.push_back(LoadRun(folder, flags.rounds));
  RequireSameJob(page.runs);
  const std::string out =
      !flags.out.empty() ? flags.out
                         : (std::filesystem::path(flags.runs.front()) / "report.html").string();
  WritePage(out, page);
  if (flags.json) {
    std::printf("%s\n", nlohmann::json{{"report", out}, {"runs", page.runs.size()}}.dump().c_str());
  } else {
    std::printf("report: %s\n", out.c_str());
  }
}

}  // namespace

void AddReportCommand(CLI::App& app) {
  auto flags =
      std::make_shared<ReportFlags>();  // shared with the callback, which outlives this call
  CLI::App* command = app.add_subcommand("report", "Make one HTML page of recorded runs");
  command->add_option("run", flags->runs, "folders of runs of the same job")->required();
  command->add_option("-o,--out", flags->out, "file to write; default: report.html of the first");
  command->add_option("--rounds", flags->rounds,
                      "of a job that was advised: its folder in the arbitrator's --run folder");
  command->add_option("--title", flags->title, "instead of the workload and the cluster");
  command->add_flag("--json", flags->json, "one JSON object on stdout");
  command->footer(
      "Examples:\n  dynamix report runs/static runs/balanced -o report.html\n"
      "  dynamix report runs/mine --rounds runs/arbitrator/mine");
  command->callback([flags] { MakeReport(*flags); });
}

}  // namespace dynamix
