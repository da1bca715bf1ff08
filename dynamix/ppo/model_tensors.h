// An ActorCritic as tensors of a TensorFile, under a prefix ("local", "team"). Shared by policy
// files and learner checkpoints. Reading believes nothing: every mismatch is an Error.
//
//   metadata
//     PREFIX.shape                  {"actor_inputs": 34, "critic_inputs": 0,
//                                    "heads": [5], "hidden": [64, 64]}
//     PREFIX.columns_off            {"actor": [3], "critic": []}
//   tensors
//     PREFIX.policy.LAYER.weight    F32, outputs x inputs
//     PREFIX.policy.LAYER.bias      F32, outputs
//     PREFIX.value.LAYER.weight     F32, outputs x inputs
//     PREFIX.value.LAYER.bias       F32, outputs
//     PREFIX.actor_inputs           F64, 3 x width: counts, means, variances
//     PREFIX.critic_inputs          F64, 3 x width: counts, means, variances
//     PREFIX.returns                F64, 3: count, mean, variance
#pragma once

#include <string>

#include "dynamix/core/result.h"
#include "dynamix/ppo/actor_critic.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {

void PutModel(const std::string& prefix, const ActorCritic& model, TensorFile& file);
bool HasModel(const std::string& prefix, const TensorFile& file);
Result<ActorCritic> TakeModel(const std::string& prefix, const TensorFile& file);

// A tensor of the given type and number of elements, or an Error naming it.
template <typename T>
Result<std::vector<T>> TakeTensor(const std::string& name, std::size_t count,
                                  const TensorFile& file) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) return Error{"tensor '" + name + "' is missing"};
  const auto* values = std::get_if<std::vector<T>>(&found->second.data);
  if (values == nullptr || values->size() != count)
    return Error{"tensor '" + name + "' is not of the expected type and size"};
  return *values;
}

}  // namespace dynamix
