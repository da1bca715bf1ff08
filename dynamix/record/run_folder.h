// What a run leaves: FOLDER/config.toml (effective), rounds.jsonl (a line per round), summary.json.
// Checkpoints lie in the same folder. Any table printed about the run can be made from these.
//
// The configuration and the summary are written at once or not at all; rounds.jsonl holds whole
// lines. An empty path records nothing. Not thread-safe; one process writes. A folder that cannot
// be written at the start throws std::runtime_error; after that nothing throws: what the disk
// refuses is counted, and Loss() says it.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/core/environment.h"
#include "dynamix/record/job_result.h"
#include "dynamix/record/rounds_file.h"
#include "dynamix/record/run_config.h"

namespace dynamix {

// One line: reports, states, actions, rewards and batches of a round. The first round's also names the
// columns of the states.
nlohmann::json RoundJson(const Round& round, const Decision& decision, const Truth& truth);

// summary.json: what was asked, and what came of it after `seconds`.
nlohmann::json SummaryJson(const RunConfig& config, const JobResult& result, double seconds);

// Thrown at the end of a run that is done, but whose folder misses something.
class RecordLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws InputError naming `flag` when `folder` holds something and none of `marks`: it is not the
// folder of a run, and nothing is to be written into it.
void RequireRunFolder(const std::string& flag, const std::filesystem::path& folder,
                      const std::vector<std::string>& marks = {"config.toml", "rounds.jsonl",
                                                               "run.json", "members"});

class RunFolder {
 public:
  using WarnFunction = std::function<void(const std::string& sentence)>;

  // `keep`: a resumed run keeps so many of its first rounds and goes on after them. `warn` is
  // called when lines begin to be lost; it may be empty.
  RunFolder(std::filesystem::path folder, const std::string& config, std::int64_t keep = 0,
            WarnFunction warn = {});

  void AddRound(const nlohmann::json& line);
  // Writes the summary with one figure more, `lost_rounds`. Returns what was to be written.
  nlohmann::json Finish(nlohmann::json summary);

  // What is missing in the folder, as a sentence; empty when nothing is.
  std::string Loss() const;

 private:
  std::int64_t LostRounds() const { return lost_before_ + rounds_.lost(); }

  std::filesystem::path folder_;
  RoundsWriter rounds_;
  WarnFunction warn_;
  std::int64_t lost_before_ = 0;  // rounds a run that is resumed had lost
  bool losing_ = false;           // the last line was lost
  std::string reason_;            // of the first loss
  bool lost_summary_ = false;
};

}  // namespace dynamix
