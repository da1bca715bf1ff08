// Learner: up to two agents, one per head, and their state on disk.
//
// The heads share nothing, so they may learn on two threads with the same result as on one. Save
// writes every number that decides the future (weights, Adam moments, normalisers, reward scales,
// generators, counters), so a restored learner continues bit for bit. Not thread-safe. Options are
// checked at construction (InputError); a checkpoint that is damaged or of another shape is an
// Error and changes nothing.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "dynamix/core/result.h"
#include "dynamix/ppo/agent.h"
#include "dynamix/ppo/policy_file.h"

namespace dynamix {

struct LearnerOptions {
  // Empty: the head is switched off.
  std::optional<AgentOptions> local;  // rows = environments x worker slots
  std::optional<AgentOptions> team;   // rows = environments
  std::uint64_t seed = 1;
  int threads = 1;  // 1 or 2: heads that learn at the same time
};

struct LearnerStatistics {
  std::optional<UpdateStatistics> local, team;
};

class Learner {
 public:
  explicit Learner(const LearnerOptions& options);

  // Null when the head is switched off.
  Agent* local() { return local_ ? &*local_ : nullptr; }
  Agent* team() { return team_ ? &*team_ : nullptr; }

  // Every head has a full rollout.
  bool Full() const;
  // Learns from the full rollouts; `*_next` is what the rows see now. `learned_share` in [0, 1].
  LearnerStatistics Update(const Observation& local_next, const Observation& team_next,
                           double learned_share);

  // The policy as it is now; `actions` must switch on the heads that are here.
  PolicyModel Model(const ActionOptions& actions, const Objective& objective,
                    std::map<std::string, std::string> training) const;
  // Continues from a policy's networks (same shapes, else an Error), with fresh optimisers.
  Status Adopt(const PolicyModel& model);

  // Between rollouts only. Atomic, two generations (tensor_file.h).
  Status Save(const std::string& path) const;
  Status Restore(const std::string& path);

 private:
  LearnerOptions options_;
  std::optional<Agent> local_, team_;
};

}  // namespace dynamix
