#include "dynamix/ppo/learner.h"

#include <exception>
#include <thread>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/model_tensors.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

constexpr const char* kLearnerFormat = "dynamix.learner";
constexpr const char* kLearnerVersion = "1";

void PutAgent(const std::string& prefix, const Agent& agent, TensorFile& file) {
  const Agent::State state = agent.GetState();
  PutModel(prefix, state.model, file);
  const auto count = static_cast<std::int64_t>(state.adam.first.size());
  const auto rows = static_cast<std::int64_t>(state.scaler.running.size());
  file.tensors[prefix + ".adam.first"] = {{count}, state.adam.first};
  file.tensors[prefix + ".adam.second"] = {{count}, state.adam.second};
  file.tensors[prefix + ".rewards.running"] = {{rows}, state.scaler.running};
  const RunningMoments& moments = state.scaler.moments;
  file.tensors[prefix + ".rewards.moments"] = {
      {3}, std::vector<double>{moments.count, moments.mean, moments.variance}};
  const Rng::State& words = state.rng.state();
  file.tensors[prefix + ".rng"] = {{4}, std::vector<std::uint64_t>(words.begin(), words.end())};
  file.tensors[prefix + ".counters"] = {
      {2},
      std::vector<std::uint64_t>{static_cast<std::uint64_t>(state.adam.steps),
                                 static_cast<std::uint64_t>(state.updates)}};
}

Result<Agent::State> TakeAgent(const std::string& prefix, const AgentOptions& options,
                               const TensorFile& file) {
  Result<ActorCritic> model = TakeModel(prefix, file);
  if (!model) return Error{model.error()};
  if (model.value().network.shape() != options.shape)
    return Error{"the " + prefix + " head of the checkpoint has another network shape"};
  const std::size_t count = options.shape.parameter_count();
  auto first = TakeTensor<float>(prefix + ".adam.first", count, file);
  if (!first) return Error{first.error()};
  auto second = TakeTensor<float>(prefix + ".adam.second", count, file);
  if (!second) return Error{second.error()};
  auto running = TakeTensor<double>(prefix + ".rewards.running", options.rows, file);
  if (!running) return Error{running.error()};
  const auto moments = TakeTensor<double>(prefix + ".rewards.moments", 3, file);
  if (!moments) return Error{moments.error()};
  const auto words = TakeTensor<std::uint64_t>(prefix + ".rng", 4, file);
  if (!words) return Error{words.error()};
  const auto counters = TakeTensor<std::uint64_t>(prefix + ".counters", 2, file);
  if (!counters) return Error{counters.error()};

  Rng::State rng{};
  std::copy(words.value().begin(), words.value().end(), rng.begin());
  Agent::State state{.model = std::move(model).value(),
                     .adam = Adam<float>(count),
                     .scaler = {std::move(running).value(),
                                {moments.value()[0], moments.value()[1], moments.value()[2]}},
                     .rng = Rng(rng),
                     .updates = static_cast<std::int64_t>(counters.value()[1])};
  state.adam.first = std::move(first).value();
  state.adam.second = std::move(second).value();
  state.adam.steps = static_cast<std::int64_t>(counters.value()[0]);
  return state;
}

bool SameShape(const std::optional<ActorCritic>& model, const std::optional<Agent>& agent) {
  if (!model || !agent) return !model && !agent;
  return model->network.shape() == agent->options().shape;
}

}  // namespace

Learner::Learner(const LearnerOptions& options) : options_(options) {
  RequireInRange("threads", options.threads, 1, 2);
  if (!options.local && !options.team)
    throw InputError("both heads are switched off: there is nothing to learn");
  const Rng seeds(options.seed);
  if (options.local) local_.emplace(*options.local, seeds.Fork(1).Next());
  if (options.team) team_.emplace(*options.team, seeds.Fork(2).Next());
}

bool Learner::Full() const { return (!local_ || local_->Full()) && (!team_ || team_->Full()); }

LearnerStatistics Learner::Update(const Observation& local_next, const Observation& team_next,
                                  double learned_share) {
  LearnerStatistics statistics;
  auto learn_local = [&] { statistics.local = local_->Update(local_next, learned_share); };
  auto learn_team = [&] { statistics.team = team_->Update(team_next, learned_share); };
  if (local_ && team_ && options_.threads == 2) {
    std::exception_ptr failure;
    std::thread other([&] {
      try {
        learn_team();
      } catch (...) {
        failure = std::current_exception();
      }
    });
    try {
      learn_local();
    } catch (...) {
      other.join();
      throw;
    }
    other.join();
    if (failure) std::rethrow_exception(failure);
    return statistics;
  }
  if (local_) learn_local();
  if (team_) learn_team();
  return statistics;
}

PolicyModel Learner::Model(const ActionOptions& actions, const Objective& objective,
                           std::map<std::string, std::string> training) const {
  DYNAMIX_CHECK(actions.local == local_.has_value() && actions.team == team_.has_value(),
                "the actions name the heads that are learned");
  PolicyModel model;
  model.actions = actions;
  model.objective = objective;
  if (local_) model.local = local_->model();
  if (team_) model.team = team_->model();
  model.training = std::move(training);
  return model;
}

Status Learner::Adopt(const PolicyModel& model) {
  if (!SameShape(model.local, local_) || !SameShape(model.team, team_))
    return Error{"the policy has other heads or another network shape than this learner"};
  if (local_) local_->Adopt(*model.local);
  if (team_) team_->Adopt(*model.team);
  return Nothing{};
}

Status Learner::Save(const std::string& path) const {
  DYNAMIX_CHECK((!local_ || local_->rollout().Empty()) && (!team_ || team_->rollout().Empty()),
                "a learner is saved between rollouts");
  TensorFile file;
  file.metadata = {{"format", kLearnerFormat}, {"version", kLearnerVersion}};
  if (local_) PutAgent("local", *local_, file);
  if (team_) PutAgent("team", *team_, file);
  return WriteTensors(path, EncodeTensors(file));
}

Status Learner::Restore(const std::string& path) {
  const Result<std::string> bytes = ReadBytes(path);
  if (!bytes) return Error{bytes.error()};
  const Result<TensorFile> decoded = DecodeTensors(bytes.value());
  if (!decoded) return Error{"file '" + path + "' is refused: " + decoded.error()};
  const TensorFile& file = decoded.value();
  if (!file.metadata.contains("format") || file.metadata.at("format") != kLearnerFormat ||
      !file.metadata.contains("version") || file.metadata.at("version") != kLearnerVersion)
    return Error{"file '" + path + "' is refused: not a learner checkpoint of version 1"};
  if (HasModel("local", file) != local_.has_value() || HasModel("team", file) != team_.has_value())
    return Error{"file '" + path + "' is refused: it holds other heads than this learner"};
  std::optional<Agent::State> local, team;
  for (const bool is_local : {true, false}) {
    const std::optional<Agent>& agent = is_local ? local_ : team_;
    if (!agent) continue;
    Result<Agent::State> state = TakeAgent(is_local ? "local" : "team", agent->options(), file);
    if (!state) return Error{"file '" + path + "' is refused: " + state.error()};
    (is_local ? local : team) = std::move(state).value();
  }
  if (local) local_->SetState(*local);
  if (team) team_->SetState(*team);
  return Nothing{};
}

}  // namespace dynamix
