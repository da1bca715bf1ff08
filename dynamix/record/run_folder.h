// What a run leaves: FOLDER/config.toml (effective), rounds.jsonl (a line per round), summary.json.
// Checkpoints lie in the same folder. Any table printed about the run can be made from these.
//
// An empty path records nothing. Not thread-safe; one process writes. Throws std::runtime_error
// when the folder cannot be written.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/core/environment.h"
#include "dynamix/record/job_result.h"
#include "dynamix/record/run_config.h"

namespace dynamix {

// One line: reports, states, actions, rewards and batches of a round.
nlohmann::json RoundJson(const Round& round, const Decision& decision, const Truth& truth);

// summary.json: what was asked, and what came of it after `seconds`.
nlohmann::json SummaryJson(const RunConfig& config, const JobResult& result, double seconds);

class RunFolder {
 public:
  // `keep`: a resumed run keeps so many lines of rounds.jsonl and goes on after them.
  RunFolder(std::filesystem::path folder, const std::string& config, std::int64_t keep = 0);

  void AddRound(const nlohmann::json& line);
  void Finish(const nlohmann::json& summary);

 private:
  std::filesystem::path folder_;
  std::ofstream rounds_;
};

}  // namespace dynamix
