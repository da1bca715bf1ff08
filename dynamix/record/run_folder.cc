#include "dynamix/record/run_folder.h"

#include <stdexcept>

#include "dynamix/core/reward.h"
#include "dynamix/record/report_json.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Those that were used: of the decision before this round.
json RewardJson(const Decision& decision) {
  const Rewards& rewards = decision.rewards;
  const bool known = !IsMissing(decision.progress_seconds);
  return {{"quality", known ? json(rewards.team.quality) : json()},
          {"efficiency", rewards.team.efficiency},
          {"stability", rewards.team.stability},
          {"local", rewards.local}};
}

std::ofstream Open(const fs::path& path, std::ios::openmode mode = std::ios::out) {
  std::ofstream file(path, mode);
  if (!file) throw std::runtime_error("cannot write " + path.string());
  return file;
}

// The first `keep` lines of a file.
std::string FirstLines(const fs::path& path, std::int64_t keep) {
  std::ifstream file(path);
  std::string text, line;
  for (std::int64_t i = 0; i < keep && std::getline(file, line); ++i) text += line + "\n";
  return text;
}

}  // namespace

json RoundJson(const Round& round, const Decision& decision, const Truth& truth) {
  json line = {{"round", round.index},
               {"seconds", truth.seconds},
               {"window_seconds", round.seconds},
               {"accuracy", truth.held_out_accuracy},
               {"loss", truth.held_out_loss},
               {"sizes", decision.sizes},
               {"team_state", decision.states.team},
               {"local_states", decision.states.local},
               {"rewards", RewardJson(decision)}};
  for (const RoundEntry& entry : round.entries) {
    line["batches"].push_back(entry.active ? entry.batch : 0);
    line["reports"].push_back(entry.report ? ReportJson(*entry.report) : json());
  }
  if (const auto* actions = std::get_if<Actions>(&decision.decisions)) {
    line["team_action"] = actions->team;
    if (actions->team_factor) line["team_factor"] = *actions->team_factor;
    line["local_actions"] = actions->local;
  } else {
    line["wanted"] = std::get<Sizes>(decision.decisions).local;
  }
  return line;
}

json SummaryJson(const RunConfig& config, const JobResult& result, double seconds) {
  return {{"backend", config.backend},
          {"workload", config.job.workload.name},
          {"cluster", config.job.scenario.name},
          {"policy", config.policy},
          {"workers", config.job.workers},
          {"seed", config.job.seed},
          {"seconds", seconds},
          {"reached", result.reached},
          {"time_to_target_s", result.time_to_target_s},
          {"accuracy", result.final_accuracy},
          {"windows", result.windows},
          {"mean_wait_share", result.mean_wait_share},
          {"last_global_batch", result.last_global_batch}};
}

RunFolder::RunFolder(fs::path folder, const std::string& config, std::int64_t keep)
    : folder_(std::move(folder)) {
  if (folder_.empty()) return;
  fs::create_directories(folder_);
  fs::remove(folder_ /
             "summary.json");  // Finish writes it: a folder without is of an unfinished run
  Open(folder_ / "config.toml") << config;
  const std::string kept = keep > 0 ? FirstLines(folder_ / "rounds.jsonl", keep) : "";
  rounds_ = Open(folder_ / "rounds.jsonl");
  rounds_ << kept;
}

void RunFolder::AddRound(const json& line) {
  if (folder_.empty()) return;
  rounds_ << line.dump() << "\n";
  rounds_.flush();
}

void RunFolder::Finish(const json& summary) {
  if (folder_.empty()) return;
  Open(folder_ / "summary.json") << summary.dump(2) << "\n";
}

}  // namespace dynamix
