// A run as it was recorded: what RunFolder left, read back. Plain values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dynamix/core/policy.h"
#include "dynamix/core/report.h"
#include "dynamix/record/run_config.h"

namespace dynamix {

// One line of rounds.jsonl.
struct RecordedRound {
  std::int64_t index = 0;
  double seconds = 0, window_seconds = 0;       // end of the window on the job's clock, its length
  double accuracy = kMissing;                   // held-out
  double loss = kMissing;                       // held-out
  std::vector<int> batches, sizes;              // in the window (0: away), decided for the next
  std::vector<Report> workers;                  // of 0 iterations: it was late, or away
  TrainingReport training;                      // of the first worker that reported
  std::vector<float> team_state, local_states;  // NaN: missing
  std::optional<Actions> actions;               // nothing when the policy named sizes
  bool guarded = false;                         // the guard decided, not the policy
  std::string policy;                           // in force, of an arbitrator's record; else empty

  double GlobalBatch() const;
};

struct RunRecord {
  std::string name;  // the folder's
  RunConfig config;
  std::vector<RecordedRound> rounds;
  bool reached = false;
  double time_to_target_s = kMissing;  // when reached
  // Held-out, at the end; the last round's line is written before that.
  double accuracy = kMissing, loss = kMissing;
  std::int64_t lost_rounds = 0;  // that could not be recorded
  nlohmann::json summary;        // summary.json; null: the run is not finished
};

// What is compared of a run: its summary; of a run that is not finished the same figures, as far as
// its rounds tell them. The length of an iteration is the job's time over its iterations.
nlohmann::json SummaryOf(const RunRecord& run);

RecordedRound ParseRound(const nlohmann::json& line);

// Reads a run's folder, or that of a job in an arbitrator's: the latter has no config.toml, and its
// policies (with swaps) and workers are those of its rounds. `rounds_folder`, if not empty, is where
// an arbitrator recorded the rounds of the run. Of a job that started anew under its name, or went on
// from a checkpoint, the later rounds count.
//
// Throws InputError naming the file for a folder that is neither, and for a damaged line. A last line
// that was cut off (the run was killed) is left out.
RunRecord LoadRun(const std::filesystem::path& folder,
                  const std::filesystem::path& rounds_folder = {});

}  // namespace dynamix
