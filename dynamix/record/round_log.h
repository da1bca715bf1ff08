// FOLDER/JOB/rounds.jsonl of an arbitrator: one line per round, appended, so that a restarted one
// goes on where it was.
//
// Add throws std::runtime_error when the disk refuses a line, which is then lost; the next one is
// tried anew (rounds_file.h). Not thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "dynamix/arbitrator/round_record.h"
#include "dynamix/record/rounds_file.h"

namespace dynamix {

// The line of a round: RoundJson, and what only an arbitrator knows (job, policy in force, late
// reports, updates of the learner).
nlohmann::json RoundLogJson(const RoundRecord& record);

class RoundLog {
 public:
  explicit RoundLog(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void Add(const RoundRecord& record);

 private:
  std::filesystem::path folder_;
  std::map<std::string, RoundsWriter> files_;  // by job
};

}  // namespace dynamix
