#include "dynamix/record/round_log.h"

#include <stdexcept>

#include "dynamix/record/run_folder.h"

namespace dynamix {
namespace {

// Open files at most: old jobs' are opened again when they speak.
constexpr std::size_t kMostFiles = 64;

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

// A file a crash cut off in the middle of a line.
bool EndsInsideALine(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() == std::ifstream::pos_type(0)) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

}  // namespace

void RoundLog::Add(const RoundRecord& record) {
  const std::filesystem::path path = folder_ / record.job / "rounds.jsonl";
  if (files_.size() >= kMostFiles && !files_.contains(record.job)) files_.clear();
  std::ofstream& file = files_[record.job];
  if (!file.is_open()) {
    std::filesystem::create_directories(path.parent_path());
    const bool cut = EndsInsideALine(path);
    file.open(path, std::ios::app);
    if (cut) file << "\n";
  }
  Truth truth;
  truth.seconds = record.seconds;
  truth.held_out_loss = truth.held_out_accuracy = kMissing;  // only the job knows
  const Decision& decision = record.decision;
  nlohmann::json line = RoundJson(record.round, decision, truth);
  line["job"] = record.job;
  line["policy"] = decision.policy;
  line["guard"] = Name(decision.guard);
  line["late"] = record.late;
  line["updates"] = record.updates;
  file << line.dump() << "\n";
  if (file.flush()) return;
  files_.erase(record.job);
  throw std::runtime_error("cannot write " + path.string());
}

}  // namespace dynamix
