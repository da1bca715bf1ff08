// dynamix export: recorded runs for other programs, as a table or as TensorBoard's files.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "dynamix/cli/commands.h"
#include "dynamix/cli/interrupt.h"
#include "dynamix/core/input_error.h"
#include "dynamix/record/rounds_follower.h"
#include "dynamix/record/run_table.h"
#include "dynamix/record/tensorboard_file.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

struct ExportFlags {
  std::vector<std::string> runs;
  std::string csv;          // file; -: stdout
  std::string tensorboard;  // folder
  bool follow = false;
  bool json = false;
};

std::int64_t WriteTable(const ExportFlags& flags, std::ostream& out) {
  WriteRow(TableColumns(), out);
  std::int64_t rows = 0;
  for (const std::string& run : flags.runs) rows += WriteRows(LoadRun(run), out);
  out.flush();
  if (!out) throw std::runtime_error("cannot write " + flags.csv);
  return rows;
}

void ExportTable(const ExportFlags& flags) {
  for (const std::string& run : flags.runs) (void)LoadRun(run);  // before there is half of a table
  if (flags.csv == "-") {
    (void)WriteTable(flags, std::cout);
    return;
  }
  std::ofstream file(flags.csv, std::ios::binary | std::ios::trunc);
  const std::int64_t rows = WriteTable(flags, file);
  if (flags.json)
    std::printf("%s\n",
                nlohmann::json{{"file", flags.csv}, {"rows", rows}, {"columns", TableColumns()}}
                    .dump()
                    .c_str());
  else
    std::printf("%s: %lld rows\n", flags.csv.c_str(), static_cast<long long>(rows));
}

// When the run began, as far as its folder tells.
double StartOf(const fs::path& run) {
  const fs::path config = run / "config.toml";
  const auto written = fs::last_write_time(fs::exists(config) ? config : run / "rounds.jsonl");
  return std::chrono::duration<double>(
             fs::file_time_type::clock::to_sys(written).time_since_epoch())
      .count();
}

// One run on its way into a file.
class ExportedRun {
 public:
  ExportedRun(fs::path run, const fs::path& folder)
      : run_(fs::absolute(run).lexically_normal()),
        folder_(folder / run_.filename()),
        rounds_(run_ / "rounds.jsonl") {}

  // How many rounds were added.
  std::int64_t Advance() {
    finished_ = fs::exists(run_ / "summary.json");  // before: what is there now is all there is
    std::int64_t added = 0;
    rounds_.ReadNew([&](const nlohmann::json& line) {
      if (starts_ != rounds_.starts()) file_.reset();
      starts_ = rounds_.starts();
      if (!file_) file_.emplace(folder_, StartOf(run_));
      file_->Add(ParseRound(line));
      ++added;
    });
    return added;
  }
  bool finished() const { return finished_; }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path run_, folder_;
  RoundsFollower rounds_;
  std::optional<TensorboardFile> file_;  // nothing before the first round
  int starts_ = 0;
  bool finished_ = false;
};

void ExportScalars(const ExportFlags& flags) {
  std::vector<ExportedRun> runs;
  std::set<fs::path> folders;
  for (const std::string& run : flags.runs) {
    if (!flags.follow) (void)LoadRun(run);  // says what is wrong with it
    if (!fs::is_directory(run)) throw InputError::OutOfRange("run", run, "the folder of a run");
    runs.emplace_back(run, flags.tensorboard);
    if (!folders.insert(runs.back().folder()).second)
      throw InputError("two runs are called " + runs.back().folder().filename().string() +
                       ": export them into two folders");
  }
  const InterruptFlag interrupted;
  std::int64_t rounds = 0;
  for (bool more = true; more;) {
    more = false;
    for (ExportedRun& run : runs) {
      const std::int64_t added = run.Advance();
      rounds += added;
      more = more || added > 0 || (flags.follow && !run.finished());
    }
    if (interrupted) break;  // asked to end: what was read is written
    if (more && flags.follow) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (flags.json)
    std::printf("%s\n",
                nlohmann::json{{"folder", flags.tensorboard}, {"rounds", rounds}}.dump().c_str());
  else
    std::printf("%s: %lld rounds\n", flags.tensorboard.c_str(), static_cast<long long>(rounds));
}

void Export(const ExportFlags& flags) {
  if (flags.csv.empty() == flags.tensorboard.empty())
    throw InputError("dynamix export needs one of --csv and --tensorboard");
  if (flags.follow && flags.tensorboard.empty())
    throw InputError("--follow is for --tensorboard: a table is of finished rounds");
  if (flags.csv.empty())
    ExportScalars(flags);
  else
    ExportTable(flags);
}

}  // namespace

void AddExportCommand(CLI::App& app) {
  // The flags live as long as the callback that reads them.
  const auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = app.add_subcommand("export", "Make tables or TensorBoard's files of runs");
  command->add_option("run", flags->runs, "folders of runs, or of an arbitrator's jobs")
      ->required();
  command->add_option("--csv", flags->csv,
                      "file of comma-separated values, a row per round and worker; -: stdout");
  command->add_option("--tensorboard", flags->tensorboard,
                      "folder for TensorBoard (--logdir), with a folder of scalars per run");
  command->add_flag(
      "--follow", flags->follow,
      "with --tensorboard: go on with rounds as they come, until the runs are finished");
  command->add_flag("--json", flags->json, "one JSON object on stdout: what was written");
  command->footer(
      "Examples:\n"
      "  dynamix export runs/mine --csv mine.csv\n"
      "  dynamix export runs/compare-*/* --csv - | head\n"
      "  dynamix export runs/mine --tensorboard logs --follow");
  command->callback([flags] { Export(*flags); });
}

}  // namespace dynamix
