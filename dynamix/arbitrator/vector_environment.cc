#include "dynamix/arbitrator/vector_environment.h"

#include <algorithm>
#include <utility>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/reward.h"

namespace dynamix {
namespace {

const VectorOptions& Validated(const VectorOptions& options) {
  options.Validate();
  return options;
}

void CheckActions(const char* field, std::span<const int> actions, std::size_t count) {
  if (actions.size() != count)
    throw InputError::OutOfRange(field, std::to_string(actions.size()) + " actions",
                                 std::to_string(count));
  for (const int action : actions) RequireInRange(field, action, 0, kActionCount - 1);
}

}  // namespace

void VectorOptions::Validate() const {
  RequireInRange("environments", environments, 1, 10000);
  RequireInRange("workers", workers, 1, 4096);
  RequireInRange("tasks", tasks, std::int64_t{1}, std::int64_t{1} << 40);
  RequireInRange("threads", threads, 1, 256);
  objective.Validate();
}

VectorEnvironment::VectorEnvironment(const VectorOptions& options, TaskSource source)
    : options_(Validated(options)),
      source_(std::move(source)),
      rng_(options.seed),
      slots_(options.environments),
      rows_(options.environments, options.workers, options.actions) {
  const std::size_t count = options.environments;
  result_.rewards.resize(count);
  result_.seconds.resize(count);
  result_.terminated.resize(count);
  result_.truncated.resize(count);
  Reset(options.seed);
}

void VectorEnvironment::Begin(Slot& slot) {
  slot.number = static_cast<std::int64_t>(rng_.Below(options_.tasks));
  slot.course = rng_.Next();
}

void VectorEnvironment::Open(Slot& slot) {
  slot.task = source_(slot.number, slot.course);
  Environment& job = *slot.task.environment;
  const Round opening = job.Opening();
  slot.round = job.Start(dynamix::Open(opening, OpeningBatch(opening, options_.actions)));
  DYNAMIX_CHECK(slot.round.entries.size() == static_cast<std::size_t>(options_.workers),
                "jobs of the number of workers that was asked for");
  slot.tau = slot.task.tau(slot.task.environment->truth().held_out_loss);
  slot.encoder.Reset();
  slot.states = slot.encoder.Encode(slot.round);
}

void VectorEnvironment::Reset(std::uint64_t seed) {
  rng_ = Rng(seed);
  for (Slot& slot : slots_) Begin(slot);
  ParallelFor(options_.environments, options_.threads, [&](int e) {
    Open(slots_[e]);
    rows_.Set(e, slots_[e].round, slots_[e].states);
  });
}

void VectorEnvironment::StepOne(int environment, const Actions& actions) {
  Slot& slot = slots_[environment];
  const std::vector<int> previous = Batches(slot.round);
  slot.round =
      slot.task.environment->Step(Apply(slot.round, slot.states, actions, options_.actions));
  slot.states = slot.encoder.Encode(slot.round);
  const WindowOutcome outcome = OutcomeOf(slot.task, options_.objective, slot.tau);
  const Rewards rewards =
      ComputeRewards(slot.round, previous, outcome.progress_seconds, options_.objective.reward);
  result_.rewards[environment] =
      rewards.team.total * slot.round.seconds / outcome.time_scale_s + outcome.lump;
  result_.seconds[environment] = slot.round.seconds;
  result_.terminated[environment] = outcome.end == StepEnd::kTerminated;
  result_.truncated[environment] = outcome.end == StepEnd::kTruncated;
  rows_.Set(environment, slot.round, slot.states);
}

const StepResult& VectorEnvironment::Step(std::span<const int> team, std::span<const int> local) {
  const std::size_t workers = options_.workers;
  CheckActions("team", team, slots_.size());
  CheckActions("local", local, slots_.size() * workers);
  ParallelFor(options_.environments, options_.threads, [&](int e) {
    const auto own = local.subspan(e * workers, workers);
    StepOne(e, {.team = team[e], .local = {own.begin(), own.end()}});
  });
  const std::span<const float> team_rows = rows_.Team().actor_rows;
  const std::span<const float> local_rows = rows_.Local().actor_rows;
  result_.final_team.assign(team_rows.begin(), team_rows.end());
  result_.final_local.assign(local_rows.begin(), local_rows.end());
  std::vector<int> ended;
  for (int e = 0; e < options_.environments; ++e)
    if (result_.terminated[e] || result_.truncated[e]) ended.push_back(e);
  for (const int e : ended) Begin(slots_[e]);
  ParallelFor(static_cast<int>(ended.size()), options_.threads, [&](int i) {
    Open(slots_[ended[i]]);
    rows_.Set(ended[i], slots_[ended[i]].round, slots_[ended[i]].states);
  });
  return result_;
}

}  // namespace dynamix
