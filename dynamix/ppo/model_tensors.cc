#include "dynamix/ppo/model_tensors.h"

#include <nlohmann/json.hpp>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

using Json = nlohmann::json;

Tensor MomentsTensor(std::span<const RunningMoments> columns, std::vector<std::int64_t> shape) {
  std::vector<double> values;
  for (const auto& c : columns) values.push_back(c.count);
  for (const auto& c : columns) values.push_back(c.mean);
  for (const auto& c : columns) values.push_back(c.variance);
  return {std::move(shape), std::move(values)};
}

Status TakeMoments(const std::string& name, const TensorFile& file,
                   std::span<RunningMoments> columns) {
  const std::size_t width = columns.size();
  const auto values = TakeTensor<double>(name, 3 * width, file);
  if (!values) return Error{values.error()};
  for (std::size_t c = 0; c < width; ++c) {
    columns[c] = {.count = values.value()[c],
                  .mean = values.value()[width + c],
                  .variance = values.value()[2 * width + c]};
    if (!(columns[c].count > 0) || !(columns[c].variance >= 0))
      return Error{"tensor '" + name + "' holds an impossible count or variance"};
  }
  return Nothing{};
}

void PutTower(const std::string& prefix, const char* name, const Tower& tower,
              std::span<const float> parameters, TensorFile& file) {
  for (std::size_t l = 0; l < tower.size(); ++l) {
    const Layer& layer = tower[l];
    const float* weights = parameters.data() + layer.weights;
    const float* bias = parameters.data() + layer.bias;
    file.tensors[prefix + "." + TensorName(name, l, "weight")] = {
        {layer.out, layer.in}, std::vector<float>(weights, weights + layer.in * layer.out)};
    file.tensors[prefix + "." + TensorName(name, l, "bias")] = {
        {layer.out}, std::vector<float>(bias, bias + layer.out)};
  }
}

Status TakeTower(const std::string& prefix, const char* name, const Tower& tower,
                 const TensorFile& file, std::span<float> parameters) {
  for (std::size_t l = 0; l < tower.size(); ++l) {
    const Layer& layer = tower[l];
    const std::size_t count = static_cast<std::size_t>(layer.in) * layer.out;
    const auto weights =
        TakeTensor<float>(prefix + "." + TensorName(name, l, "weight"), count, file);
    if (!weights) return Error{weights.error()};
    const auto bias = TakeTensor<float>(prefix + "." + TensorName(name, l, "bias"),
                                        static_cast<std::size_t>(layer.out), file);
    if (!bias) return Error{bias.error()};
    std::copy(weights.value().begin(), weights.value().end(), parameters.begin() + layer.weights);
    std::copy(bias.value().begin(), bias.value().end(), parameters.begin() + layer.bias);
  }
  return Nothing{};
}

// Integers in [0, 4096] only, so that no later arithmetic can overflow.
bool TakeInts(const Json& json, const char* key, std::vector<int>& out) {
  if (!json.contains(key) || !json[key].is_array() || json[key].size() > 4096) return false;
  for (const Json& value : json[key]) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 4096) return false;
    out.push_back(value.get<int>());
  }
  return true;
}

Result<NetworkShape> TakeShape(const std::string& prefix, const TensorFile& file) {
  const Error bad{"metadata '" + prefix + ".shape' is missing or malformed"};
  const auto found = file.metadata.find(prefix + ".shape");
  if (found == file.metadata.end()) return bad;
  Json json = Json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return bad;
  NetworkShape shape;
  shape.hidden.clear();
  shape.heads.clear();
  std::vector<int> inputs;
  json["inputs"] = Json::array({json["actor_inputs"], json["critic_inputs"]});
  if (!TakeInts(json, "inputs", inputs) || !TakeInts(json, "hidden", shape.hidden) ||
      !TakeInts(json, "heads", shape.heads))
    return bad;
  shape.actor_inputs = inputs[0];
  shape.critic_inputs = inputs[1];
  try {
    shape.Validate();
  } catch (const InputError& error) {
    return Error{"metadata '" + prefix + ".shape': " + error.what()};
  }
  return shape;
}

Status TakeColumnsOff(const std::string& prefix, const TensorFile& file, ActorCritic& model) {
  const Error bad{"metadata '" + prefix + ".columns_off' is missing or malformed"};
  const auto found = file.metadata.find(prefix + ".columns_off");
  if (found == file.metadata.end()) return bad;
  const Json json = Json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  std::vector<int> actor, critic;
  if (!json.is_object() || !TakeInts(json, "actor", actor) || !TakeInts(json, "critic", critic))
    return bad;
  for (const int column : actor)
    if (column >= model.actor_inputs.width()) return bad;
  for (const int column : critic)
    if (column >= model.critic_inputs.width()) return bad;
  model.actor_inputs.SwitchOff(actor);
  model.critic_inputs.SwitchOff(critic);
  return Nothing{};
}

std::size_t FloatCount(const TensorFile& file) {
  std::size_t count = 0;
  for (const auto& [name, tensor] : file.tensors)
    if (const auto* values = std::get_if<std::vector<float>>(&tensor.data)) count += values->size();
  return count;
}

}  // namespace

void PutModel(const std::string& prefix, const ActorCritic& model, TensorFile& file) {
  const NetworkShape& shape = model.network.shape();
  file.metadata[prefix + ".shape"] = Json{
      {"actor_inputs", shape.actor_inputs},
      {"critic_inputs", shape.critic_inputs},
      {"hidden", shape.hidden},
      {"heads", shape.heads}}.dump();
  file.metadata[prefix + ".columns_off"] = Json{
      {"actor", model.actor_inputs.SwitchedOff()},
      {"critic",
       model.critic_inputs.SwitchedOff()}}.dump();
  PutTower(prefix, "policy", model.network.policy(), model.network.parameters(), file);
  PutTower(prefix, "value", model.network.value(), model.network.parameters(), file);
  file.tensors[prefix + ".actor_inputs"] =
      MomentsTensor(model.actor_inputs.columns(), {3, model.actor_inputs.width()});
  file.tensors[prefix + ".critic_inputs"] =
      MomentsTensor(model.critic_inputs.columns(), {3, model.critic_inputs.width()});
  file.tensors[prefix + ".returns"] = MomentsTensor({&model.returns, 1}, {3});
}

bool HasModel(const std::string& prefix, const TensorFile& file) {
  return file.metadata.contains(prefix + ".shape");
}

Result<ActorCritic> TakeModel(const std::string& prefix, const TensorFile& file) {
  const Result<NetworkShape> shape = TakeShape(prefix, file);
  if (!shape) return Error{shape.error()};
  // Before memory is taken: a small file must not claim a huge network.
  if (shape.value().parameter_count() > FloatCount(file))
    return Error{"metadata '" + prefix + ".shape' claims more weights than the file holds"};
  ActorCritic model(shape.value());
  Status status = TakeColumnsOff(prefix, file, model);
  if (status)
    status = TakeTower(prefix, "policy", model.network.policy(), file, model.network.parameters());
  if (status)
    status = TakeTower(prefix, "value", model.network.value(), file, model.network.parameters());
  if (status) status = TakeMoments(prefix + ".actor_inputs", file, model.actor_inputs.columns());
  if (status) status = TakeMoments(prefix + ".critic_inputs", file, model.critic_inputs.columns());
  if (status) status = TakeMoments(prefix + ".returns", file, {&model.returns, 1});
  if (!status) return Error{status.error()};
  return model;
}

}  // namespace dynamix
