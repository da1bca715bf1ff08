// FOLDER/JOB/rounds.jsonl of an arbitrator: one line per round, appended, so that a restarted one
// goes on where it was.
//
// Add throws std::runtime_error when the disk refuses a line; the next line starts anew, so a file
// holds whole lines and at most one broken one where it was cut. Not thread-safe.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "dynamix/arbitrator/round_record.h"

namespace dynamix {

class RoundLog {
 public:
  explicit RoundLog(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void Add(const RoundRecord& record);

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::ofstream> files_;  // by job
};

}  // namespace dynamix
