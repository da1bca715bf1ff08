#include "dynamix/record/round_log.h"

#include <stdexcept>

#include "dynamix/record/run_folder.h"

namespace dynamix {
namespace {

// Open files at most: old jobs' are opened again when they speak.
constexpr std::size_t kMostFiles = 64;

}  // namespace

nlohmann::json RoundLogJson(const RoundRecord& record) {
  Truth truth;
  truth.seconds = record.seconds;
  truth.held_out_loss = truth.held_out_accuracy = kMissing;  // only the job knows
  const Decision& decision = record.decision;
  nlohmann::json line = RoundJson(record.round, decision, truth);
  line["job"] = record.job;
  line["policy"] = decision.policy;
  line["late"] = record.late;
  line["updates"] = record.updates;
  return line;
}

void RoundLog::Add(const RoundRecord& record) {
  if (files_.size() >= kMostFiles && !files_.contains(record.job)) files_.clear();
  RoundsWriter& file =
      files_.try_emplace(record.job, folder_ / record.job / "rounds.jsonl").first->second;
  if (const Status added = file.Add(RoundLogJson(record)); !added)
    throw std::runtime_error(added.error());
}

}  // namespace dynamix
