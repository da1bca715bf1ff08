#include "dynamix/record/run_record.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <numeric>

#include "dynamix/core/input_error.h"
#include "dynamix/record/report_json.h"
#include "dynamix/record/rounds_file.h"

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

int RunsIn(const fs::path& folder) {
  std::error_code unreadable;
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable))
    count += fs::exists(entry.path() / "rounds.jsonl", unreadable) ? 1 : 0;
  return count;
}

void RequireFile(const fs::path& path) {
  if (fs::exists(path)) return;
  const fs::path folder = path.parent_path();
  std::string why = "no " + path.string() + ": not the folder of a run";
  if (const int runs = RunsIn(folder); runs > 0)
    why += ", but of " + std::to_string(runs) + ": name " + (folder / "*").string();
  throw InputError(why);
}

// What only the end of a run knows. A run that is not finished has no summary.
void TakeSummary(const fs::path& path, RunRecord& run) {
  std::ifstream text(path);
  if (!text) return;
  try {
    const json summary = run.summary = json::parse(text);
    if (summary.contains("accuracy")) run.accuracy = Number(summary, "accuracy");
    if (summary.contains("loss")) run.loss = Number(summary, "loss");
    run.lost_rounds = summary.value("lost_rounds", run.lost_rounds);  // also the last ones
    if (!summary.value("reached", false)) return;
    run.reached = true;
    run.time_to_target_s = Number(summary, "time_to_target_s");
  } catch (const json::exception& error) {
    throw InputError(path.string() + " is damaged: " + error.what());
  }
}

}  // namespace

double RecordedRound::GlobalBatch() const {
  return std::accumulate(batches.begin(), batches.end(), 0.0);
}

RecordedRound ParseRound(const json& line) {
  RecordedRound round;
  round.index = line.at("round").get<std::int64_t>();
  round.seconds = line.at("seconds").get<double>();
  round.window_seconds = Number(line, "window_seconds");
  round.accuracy = Number(line, "accuracy");
  round.loss = Number(line, "loss");
  round.batches = line.at("batches").get<std::vector<int>>();
  round.sizes = line.at("sizes").get<std::vector<int>>();
  for (const json& report : line.at("reports"))
    round.workers.push_back(report.is_null() ? Report{} : ReadReportJson(report, round.index));
  const auto heard = std::find_if(round.workers.begin(), round.workers.end(),
                                  [](const Report& report) { return report.iterations > 0; });
  if (heard != round.workers.end()) round.training = heard->training;
  round.team_state = Floats(line, "team_state");
  round.local_states = Floats(line, "local_states");
  round.policy = line.value("policy", "");
  round.guarded = line.value("guard", "advises") != "advises";
  if (line.contains("team_action"))
    round.actions = Actions{.team = line["team_action"].get<int>(),
                            .local = line.at("local_actions").get<std::vector<int>>()};
  if (round.actions && line.contains("team_factor"))
    round.actions->team_factor = line["team_factor"].get<double>();
  return round;
}

json SummaryOf(const RunRecord& run) {
  if (run.summary.is_object() && run.summary.contains("iteration_ms")) return run.summary;
  double iterations = 0, samples = 0, seconds = 0, waited = 0, worked = 0;
  for (const RecordedRound& round : run.rounds) {
    int most = 0;
    for (const Report& report : round.workers) {
      if (report.iterations == 0 || IsMissing(report.compute_ms)) continue;
      most = std::max(most, report.iterations);
      waited += report.iterations * report.wait_ms;
      worked += report.iterations * (report.compute_ms + report.wait_ms + report.communication_ms);
    }
    iterations += most;
    samples += most * round.GlobalBatch();
    if (most > 0 && !IsMissing(round.window_seconds)) seconds += round.window_seconds;
  }
  const auto known = [](double value) { return IsMissing(value) ? json() : json(value); };
  const TargetOptions& target = run.config.job.workload.target;
  json summary = run.summary.is_object() ? run.summary : json::object();
  summary["reached"] = run.reached;
  summary["time_to_target_s"] = run.reached ? run.time_to_target_s : run.rounds.back().seconds;
  summary["accuracy"] = known(run.accuracy);
  summary["loss"] = known(run.loss);
  summary["target_loss"] = target.by_loss() ? json(target.loss) : json();
  summary["samples"] = samples;
  summary["mean_wait_share"] = worked > 0 ? json(waited / worked) : json();
  summary["iteration_ms"] = iterations > 0 ? json(1e3 * seconds / iterations) : json();
  return summary;
}

namespace {

// The policies of a job that an arbitrator advised, in order; empty: it was not.
std::string PoliciesOf(const std::vector<RecordedRound>& rounds) {
  std::string all, last;
  for (const RecordedRound& round : rounds) {
    if (round.policy.empty() || round.policy == last) continue;
    all += (last.empty() ? "" : ", then ") + round.policy;
    last = round.policy;
  }
  return all;
}

// Of an arbitrator's record: what its rounds tell.
RunConfig ConfigOfRounds(const RunRecord& run) {
  RunConfig config{.backend = "live", .policy = ""};
  config.job.workers = static_cast<int>(run.rounds.front().batches.size());
  config.job.workload.name = run.name;
  config.job.scenario.name = "the user's cluster";
  return config;
}

// A job may have started anew under its name, or gone on from a checkpoint: the last word counts.
std::vector<RecordedRound> LoadRounds(const fs::path& folder) {
  RequireFile(folder / "rounds.jsonl");
  std::vector<RecordedRound> rounds;
  ReadRounds(folder / "rounds.jsonl", [&rounds](const json& line) {
    RecordedRound round = ParseRound(line);
    while (!rounds.empty() && rounds.back().index >= round.index) rounds.pop_back();
    rounds.push_back(std::move(round));
  });
  if (rounds.empty())
    throw InputError(folder.string() +
                     " has no rounds yet. Those of a job that was advised are with its "
                     "arbitrator: dynamix report " +
                     folder.string() + " --rounds ITS_RUN_FOLDER/JOB");
  return rounds;
}

}  // namespace

RunRecord LoadRun(const fs::path& folder, const fs::path& rounds_folder) {
  RunRecord run;
  run.name = fs::absolute(folder).lexically_normal().filename().string();
  run.rounds = LoadRounds(rounds_folder.empty() ? folder : rounds_folder);
  const std::string policies = PoliciesOf(run.rounds);
  const bool has_config = policies.empty() || fs::exists(folder / "config.toml");
  if (has_config) RequireFile(folder / "config.toml");
  run.config = has_config ? LoadRunConfig((folder / "config.toml").string()) : ConfigOfRounds(run);
  if (!policies.empty()) run.config.policy = policies;
  const TargetOptions& target = run.config.job.workload.target;
  for (const RecordedRound& round : run.rounds) {
    const bool good = (target.accuracy > 0 && round.accuracy >= target.accuracy) ||
                      (target.by_loss() && round.loss <= target.loss);
    if (run.reached || !good) continue;
    run.reached = true;
    run.time_to_target_s = round.seconds;
  }
  run.accuracy = run.rounds.back().accuracy;
  run.loss = run.rounds.back().loss;
  run.lost_rounds = run.rounds.back().index - run.rounds.front().index + 1 -
                    static_cast<std::int64_t>(run.rounds.size());
  TakeSummary(folder / "summary.json", run);
  return run;
}

}  // namespace dynamix
