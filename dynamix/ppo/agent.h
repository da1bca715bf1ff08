// Agent: one head that learns: act, store, advantage, update. Two of them make a Learner.
//
//   while (...) {
//     const std::vector<int>& actions = agent.Act(observation);   // opens a step
//     ... the environments move ...
//     agent.Close(outcome);                                       // closes it
//     if (agent.Full()) statistics = agent.Update(next_observation, learned_share);
//   }
// Everything random comes from its own generator, so a run is repeatable bit for bit, and two
// agents may run on two threads. Not thread-safe itself. Options are checked at construction
// (InputError); misuse is a bug (CheckFailure).
#pragma once

#include <memory>
#include <vector>

#include "dynamix/ppo/actor_critic.h"
#include "dynamix/ppo/rollout.h"
#include "dynamix/ppo/update.h"

namespace dynamix {

struct AgentOptions {
  NetworkShape shape;
  int rows = 1;  // decision makers per step, in [1, 1000000]
  PpoOptions ppo;
  // Action of a row that is not active; nobody executes it.
  int idle_action = 0;
  // An untrained agent takes this action of the first head in most steps; -1: none more than others.
  int first_action = -1;
  // Columns forced to missing, for ablations.
  std::vector<int> actor_columns_off, critic_columns_off;

  void Validate() const;
};

// Divides rewards by the deviation of the running discounted return (Engstrom et al. 2020, arXiv
// 2005.12729).
struct RewardScaler {
  std::vector<double> running;  // per row
  RunningMoments moments;

  // Learns from a full rollout and returns what to multiply its rewards by.
  double Update(const Rollout& rollout);
};

class Agent {
 public:
  Agent(const AgentOptions& options, std::uint64_t seed);

  // Learns the inputs' scale, samples an action per active row, and opens a step of the rollout.
  // rows x heads; valid until the next call.
  const std::vector<int>& Act(const Observation& observation);
  void Close(const Outcome& outcome);
  bool Full() const { return rollout_.Full(); }
  // Learns from the full rollout and empties it. `next` is what the rows see now; `learned_share`
  // in [0, 1] is how much of the planned learning is done.
  UpdateStatistics Update(const Observation& next, double learned_share);

  const AgentOptions& options() const { return options_; }
  const ActorCritic& model() const { return model_; }
  // Starts from another model, e.g. one from a policy file: same shape, fresh optimiser.
  void Adopt(const ActorCritic& model);
  const Rollout& rollout() const { return rollout_; }

  // The whole state between two rollouts; restoring it continues bit for bit.
  struct State {
    ActorCritic model;
    Adam<float> adam;
    RewardScaler scaler;
    Rng rng;
    std::int64_t updates = 0;
  };
  const State GetState() const { return {model_, adam_, scaler_, rng_, updates_}; }
  void SetState(const State& state);
  std::int64_t updates() const { return updates_; }

 private:
  std::vector<double> Values(std::span<const float> normalized, std::span<const int> rows);
  std::vector<double> LastValues(const Observation& next);
  Advantages RolloutAdvantages(const Observation& next, UpdateStatistics& statistics);
  void UpdateReturnScale(const Advantages& advantages, std::span<const int> rows);

  AgentOptions options_;
  Rng rng_;
  ActorCritic model_;
  Adam<float> adam_;
  RewardScaler scaler_;
  Rollout rollout_;
  Evaluator evaluator_;
  LossPass<float> loss_;
  Choices choices_;
  std::vector<int> actions_;  // of all rows, in the last step
  std::int64_t updates_ = 0;
};

}  // namespace dynamix
