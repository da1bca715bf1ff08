#include "dynamix/arbitrator/learning_options.h"

#include <algorithm>

#include "dynamix/core/input_error.h"
#include "dynamix/ppo/round_batch.h"

namespace dynamix {
namespace {

// Whether the column is of that family, or of that feature: "wait_share.max" is of "wait_share".
bool IsOf(const Column& column, const std::string& name) {
  return Name(column.family) == name || column.name.substr(0, column.name.find('.')) == name;
}

std::vector<int> ColumnsOf(const std::vector<Column>& columns,
                           const std::vector<std::string>& names) {
  std::vector<int> chosen;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (std::any_of(names.begin(), names.end(),
                    [&](const std::string& name) { return IsOf(columns[c], name); }))
      chosen.push_back(static_cast<int>(c));
  }
  return chosen;
}

}  // namespace

void LearningOptions::Validate() const {
  objective.Validate();
  RequireInRange("jobs", jobs, 1, 10000);
  RequireInRange("max_workers", max_workers, 1, 4096);
  RequireInRange("threads", threads, 1, 256);
  for (const std::string& name : without)
    if (ColumnsOf(TeamColumns(), {name}).empty() && ColumnsOf(LocalColumns(), {name}).empty())
      throw InputError::OutOfRange(
          "without", name, "batch, network, system, statistics or a feature of docs/metrics.md");
}

LearnerOptions MakeLearnerOptions(const LearningOptions& options, const PpoOptions& team,
                                  const PpoOptions& local, const std::vector<int>& hidden,
                                  std::uint64_t seed) {
  const RoundBatch shapes(1, options.max_workers, options.actions);
  LearnerOptions learner;
  learner.seed = seed;
  learner.threads = options.threads > 1 ? 2 : 1;
  if (options.actions.team) {
    AgentOptions& head = learner.team.emplace();
    head.shape = shapes.TeamShape(hidden);
    head.rows = options.jobs;
    head.ppo = team;
    head.idle_action = kHold;
    // Learning starts from the best rule, which goes to that landmark.
    if (options.actions.kind == ActionKind::kGuided) head.first_action = kToSoonest;
    head.actor_columns_off = ColumnsOf(TeamColumns(), options.without);
  }
  if (options.actions.local) {
    AgentOptions& head = learner.local.emplace();
    head.shape = shapes.LocalShape(hidden);
    head.rows = options.jobs * options.max_workers;
    head.ppo = local;
    head.idle_action = kHold;
    head.actor_columns_off = ColumnsOf(LocalColumns(), options.without);
  }
  return learner;
}

}  // namespace dynamix
