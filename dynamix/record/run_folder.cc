#include "dynamix/record/run_folder.h"

#include "dynamix/core/features.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/reward.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/record/report_json.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const char* Name(Guard::State state) {
  switch (state) {
    case Guard::State::kMeasures:
      return "measures";
    case Guard::State::kAdvises:
      return "advises";
    case Guard::State::kFallsBack:
      break;
  }
  return "falls_back";
}

json Names(const std::vector<Column>& columns) {
  json names = json::array();
  for (const Column& column : columns) names.push_back(column.name);
  return names;
}

// Those that were used: of the decision before this round.
json RewardJson(const Decision& decision) {
  const Rewards& rewards = decision.rewards;
  const bool known = !IsMissing(decision.progress_seconds);
  return {{"quality", known ? json(rewards.team.quality) : json()},
          {"efficiency", rewards.team.efficiency},
          {"stability", rewards.team.stability},
          {"local", rewards.local}};
}

}  // namespace

json RoundJson(const Round& round, const Decision& decision, const Truth& truth) {
  json line = {{"round", round.index},
               {"seconds", truth.seconds},
               {"window_seconds", round.seconds},
               {"accuracy", truth.held_out_accuracy},
               {"loss", truth.held_out_loss},
               {"sizes", decision.sizes},
               {"guard", Name(decision.guard)},
               {"team_state", decision.states.team},
               {"local_states", decision.states.local},
               {"rewards", RewardJson(decision)}};
  if (round.index == 0)
    line["columns"] = {{"team_state", Names(TeamColumns())},
                       {"local_states", Names(LocalColumns())}};
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
          {"loss", result.final_loss},
          {"windows", result.windows},
          {"mean_wait_share", result.mean_wait_share},
          {"last_global_batch", result.last_global_batch}};
}

void RequireRunFolder(const std::string& flag, const fs::path& folder,
                      const std::vector<std::string>& marks) {
  std::error_code error;
  if (!fs::is_directory(folder, error) || fs::is_empty(folder, error)) return;
  for (const std::string& mark : marks)
    if (fs::exists(folder / mark, error)) return;
  throw InputError(flag + " = " + folder.string() +
                   " holds something else than a run: name another folder, or an empty one");
}

RunFolder::RunFolder(fs::path folder, const std::string& config, std::int64_t keep,
                     WarnFunction warn)
    : folder_(std::move(folder)), rounds_(folder_ / "rounds.jsonl"), warn_(std::move(warn)) {
  if (folder_.empty()) return;
  fs::create_directories(folder_);
  // Finish writes it: a folder without is of an unfinished run.
  fs::remove(folder_ / "summary.json");
  fs::remove(folder_ / "report.html");  // of what was here before
  if (Status written = WriteBytes((folder_ / "config.toml").string(), config); !written)
    throw std::runtime_error(written.error());
  const Result<std::int64_t> kept = rounds_.KeepBefore(keep);
  if (!kept) throw std::runtime_error(kept.error());
  // A run whose rounds an arbitrator records has no lines at all.
  if (kept.value() > 0) lost_before_ = keep - kept.value();
  if (lost_before_ > 0) reason_ = "they were lost before the run was resumed";
}

void RunFolder::AddRound(const json& line) {
  if (folder_.empty()) return;
  const Status added = rounds_.Add(line);
  if (!added && reason_.empty()) reason_ = added.error();
  if (!added && !losing_ && warn_)
    warn_("the run goes on, its rounds are lost until they can be written: " + added.error());
  losing_ = !added;
}

json RunFolder::Finish(json summary) {
  if (folder_.empty()) return summary;
  summary["lost_rounds"] = LostRounds();
  Status status = rounds_.Sync();
  if (!status && reason_.empty()) reason_ = status.error();
  status = WriteBytes((folder_ / "summary.json").string(), summary.dump(2) + "\n");
  lost_summary_ = !status;
  if (!status && reason_.empty()) reason_ = status.error();
  return summary;
}

std::string RunFolder::Loss() const {
  if (reason_.empty()) return "";
  std::string what;
  if (LostRounds() > 0)
    what = std::to_string(LostRounds()) + (LostRounds() == 1 ? " round" : " rounds");
  if (lost_summary_) what += what.empty() ? "the summary" : " and the summary";
  if (what.empty()) what = "the end of rounds.jsonl";  // only Sync failed
  return folder_.string() + " is not complete: " + what + " could not be recorded: " + reason_;
}

}  // namespace dynamix
