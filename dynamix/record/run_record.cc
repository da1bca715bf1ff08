#include "dynamix/record/run_record.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <numeric>

#include "dynamix/core/input_error.h"
#include "dynamix/record/report_json.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Null is what was not measured.
double Number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? kMissing : found->get<double>();
}

std::vector<float> Floats(const json& line, const char* key) {
  std::vector<float> values;
  if (const auto found = line.find(key); found != line.end())
    for (const json& value : *found)
      values.push_back(value.is_null() ? std::numeric_limits<float>::quiet_NaN()
                                       : value.get<float>());
  return values;
}

std::ifstream Open(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw InputError("no " + path.string() + ": not the folder of a run");
  return file;
}

}  // namespace

double RecordedRound::GlobalBatch() const {
  return std::accumulate(batches.begin(), batches.end(), 0.0);
}

RecordedRound ParseRound(const json& line) {
  RecordedRound round;
  round.seconds = line.at("seconds").get<double>();
  round.window_seconds = Number(line, "window_seconds");
  round.accuracy = Number(line, "accuracy");
  round.loss = Number(line, "loss");
  round.batches = line.at("batches").get<std::vector<int>>();
  round.sizes = line.at("sizes").get<std::vector<int>>();
  const auto index = line.at("round").get<std::int64_t>();
  for (const json& report : line.at("reports"))
    round.workers.push_back(report.is_null() ? Report{} : ReadReportJson(report, index));
  const auto heard = std::find_if(round.workers.begin(), round.workers.end(),
                                  [](const Report& report) { return report.iterations > 0; });
  if (heard != round.workers.end()) round.training = heard->training;
  round.team_state = Floats(line, "team_state");
  round.local_states = Floats(line, "local_states");
  if (line.contains("team_action"))
    round.actions = Actions{.team = line["team_action"].get<int>(),
                            .local = line.at("local_actions").get<std::vector<int>>()};
  if (round.actions && line.contains("team_factor"))
    round.actions->team_factor = line["team_factor"].get<double>();
  return round;
}

RunRecord LoadRun(const fs::path& folder) {
  RunRecord run;
  run.name = fs::absolute(folder).lexically_normal().filename().string();
  Open(folder / "config.toml");
  run.config = LoadRunConfig((folder / "config.toml").string());
  std::ifstream file = Open(folder / "rounds.jsonl");
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      run.rounds.push_back(ParseRound(json::parse(line)));
    } catch (const json::exception& error) {
      if (file.peek() == std::ifstream::traits_type::eof()) break;
      throw InputError((folder / "rounds.jsonl").string() + ":" + std::to_string(number) +
                       " is damaged: " + error.what());
    }
  }
  if (run.rounds.empty()) throw InputError(folder.string() + " has no rounds yet");
  const double target = run.config.job.workload.target.accuracy;
  for (const RecordedRound& round : run.rounds) {
    if (run.reached || !(target > 0) || !(round.accuracy >= target)) continue;
    run.reached = true;
    run.time_to_target_s = round.seconds;
  }
  run.accuracy = run.rounds.back().accuracy;
  if (std::ifstream text(folder / "summary.json"); text) {
    const json summary = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (summary.is_object() && summary.contains("accuracy"))
      run.accuracy = Number(summary, "accuracy");
    if (summary.is_object() && summary.value("reached", false)) {
      run.reached = true;
      run.time_to_target_s = Number(summary, "time_to_target_s");
    }
  }
  return run;
}

}  // namespace dynamix
