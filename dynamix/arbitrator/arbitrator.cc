#include "dynamix/arbitrator/arbitrator.h"

namespace dynamix {

std::vector<int> Arbitrator::Step(const Round& round) {
  states_ = encoder_.Encode(round);
  decisions_ = policy_->Decide(round, states_, rng_);
  return Apply(round, states_.shares, decisions_, actions_);
}

}  // namespace dynamix
