#include "dynamix/ppo/policy_file.h"

#include "dynamix/core/features.h"
#include "dynamix/core/input_error.h"
#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/model_tensors.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

constexpr const char* kPolicyFormat = "dynamix.policy";
constexpr const char* kPolicyVersion = "1";
constexpr std::string_view kTraining = "training.";

std::string Field(const TensorFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  return found == file.metadata.end() ? std::string() : found->second;
}

Status CheckMetadata(const TensorFile& file) {
  if (Field(file, "format") != kPolicyFormat)
    return Error{"this is not a policy file: format is '" + Field(file, "format") +
                 "', expected 'dynamix.policy'"};
  if (Field(file, "version") != kPolicyVersion)
    return Error{"policy file version '" + Field(file, "version") +
                 "' is not known; this build reads version 1"};
  if (Field(file, "features") != FormatHash(FeatureHash()))
    return Error{"the policy was made for feature list " + Field(file, "features") +
                 ", this build has " + FormatHash(FeatureHash())};
  return Nothing{};
}

// A head's network, fit for `width` features and the five actions; nothing when the head is
// switched off.
Status TakeHead(const std::string& prefix, bool wanted, int width, const TensorFile& file,
                std::optional<ActorCritic>& out) {
  if (HasModel(prefix, file) != wanted)
    return Error{"the policy's actions and its networks disagree about the " + prefix + " head"};
  if (!wanted) return Nothing{};
  Result<ActorCritic> model = TakeModel(prefix, file);
  if (!model) return Error{model.error()};
  const NetworkShape& shape = model.value().network.shape();
  if (shape.actor_inputs != width || shape.heads != std::vector<int>{kActionCount})
    return Error{"the " + prefix + " network has " + std::to_string(shape.actor_inputs) +
                 " inputs; expected " + std::to_string(width) + " inputs and one head of " +
                 std::to_string(kActionCount) + " actions"};
  out = std::move(model).value();
  return Nothing{};
}

// Earlier builds merged several policies into one (team2, team3, ...): its first head alone is another
// policy.
Status RefuseOthers(const PolicyModel& model, const TensorFile& file) {
  for (const auto& [name, tensor] : file.tensors) {
    const std::string head = name.substr(0, name.find('.'));
    if (!(head == "local" && model.local) && !(head == "team" && model.team))
      return Error{
          "tensor '" + name +
          "' belongs to no head of this policy; one that was merged of several is not read"};
  }
  return Nothing{};
}

}  // namespace

std::string FormatHash(std::uint64_t hash) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(hash >> shift) & 15];
  return text;
}

std::string EncodePolicy(const PolicyModel& model) {
  DYNAMIX_CHECK(model.local.has_value() == model.actions.local &&
                    model.team.has_value() == model.actions.team,
                "a policy has a network for every head that is on");
  TensorFile file;
  file.metadata = {{"format", kPolicyFormat},
                   {"version", kPolicyVersion},
                   {"features", FormatHash(FeatureHash())},
                   {"actions", Format(model.actions)},
                   {"objective", Format(model.objective)}};
  for (const auto& [key, value] : model.training)
    file.metadata[std::string(kTraining).append(key)] = value;
  if (model.local) PutModel("local", *model.local, file);
  if (model.team) PutModel("team", *model.team, file);
  return EncodeTensors(file);
}

Result<PolicyModel> DecodePolicy(std::string_view bytes) {
  const Result<TensorFile> decoded = DecodeTensors(bytes);
  if (!decoded) return Error{decoded.error()};
  const TensorFile& file = decoded.value();
  Status status = CheckMetadata(file);
  if (!status) return Error{status.error()};
  PolicyModel model;
  try {
    model.actions = ParseActionOptions(Field(file, "actions"));
    if (file.metadata.contains("objective"))
      model.objective = ParseObjective(Field(file, "objective"));
  } catch (const InputError& error) {
    return Error{std::string("metadata: ") + error.what()};
  }
  status = TakeHead("local", model.actions.local, LocalWidth(), file, model.local);
  if (status) status = TakeHead("team", model.actions.team, TeamWidth(), file, model.team);
  if (status) status = RefuseOthers(model, file);
  if (!status) return Error{status.error()};
  for (const auto& [key, value] : file.metadata)
    if (key.starts_with(kTraining)) model.training[key.substr(kTraining.size())] = value;
  return model;
}

Status SavePolicy(const std::string& path, const PolicyModel& model) {
  return WriteTensors(path, EncodePolicy(model));
}

Result<PolicyModel> LoadPolicy(const std::string& path) {
  const Result<std::string> bytes = ReadBytes(path);
  if (!bytes) return Error{bytes.error()};
  Result<PolicyModel> model = DecodePolicy(bytes.value());
  if (!model) return Error{"file '" + path + "' is refused: " + model.error()};
  return model;
}

}  // namespace dynamix
