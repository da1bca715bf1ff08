// The only file of the room that includes libtorch.
#include <torch/script.h>

#include <sstream>

#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/export.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

torch::Tensor Numbers(const float* values, std::vector<std::int64_t> shape) {
  return torch::from_blob(const_cast<float*>(values), shape, torch::kFloat32).clone();
}

// Registers a head's numbers and returns the lines that turn `head` into logits.
std::string AddHead(torch::jit::Module& module, const std::string& head, const ActorCritic& model) {
  std::vector<double> mean, scale;
  for (const RunningMoments& column : model.actor_inputs.columns()) {
    mean.push_back(column.mean);
    scale.push_back(1 / column.Deviation());
  }
  for (const int column : model.actor_inputs.SwitchedOff()) scale[column] = 0;
  module.register_buffer(head + "_mean", torch::tensor(mean, torch::kFloat64));
  module.register_buffer(head + "_scale", torch::tensor(scale, torch::kFloat64));
  std::string code = "  y = torch.clamp((" + head + ".double() - self." + head + "_mean) * self." +
                     head + "_scale, -10.0, 10.0).float()\n" + "  y = torch.where(torch.isfinite(" +
                     head + "), y, torch.zeros_like(y))\n";
  const Network<float>& network = model.network;
  for (std::size_t l = 0; l < network.policy().size(); ++l) {
    const Layer& layer = network.policy()[l];
    const std::string weight = head + "_weight" + std::to_string(l);
    const std::string bias = head + "_bias" + std::to_string(l);
    const float* p = network.parameters().data();
    module.register_parameter(weight, Numbers(p + layer.weights, {layer.out, layer.in}), false);
    module.register_parameter(bias, Numbers(p + layer.bias, {layer.out}), false);
    code += "  y = torch.addmm(self." + bias + ", y, self." + weight + ".t())\n";
    if (layer.tanh) code += "  y = torch.tanh(y)\n";
  }
  return code + "  " + head + "_logits = y\n";
}

torch::jit::Module MakeModule(const PolicyModel& model) {
  torch::jit::Module module("dynamix_policy");
  std::string body, inputs, outputs;
  const auto add = [&](const std::string& head, const ActorCritic& network) {
    body += AddHead(module, head, network);
    inputs += ", " + head;
    outputs += (outputs.empty() ? "" : ", ") + head + "_logits";
  };
  if (model.local) add("local", *model.local);
  if (model.team) add("team", *model.team);
  module.define("def forward(self" + inputs + "):\n" + body + "  return " + outputs + "\n");
  return module;
}

}  // namespace

Status ExportTorchScript(const PolicyModel& model, const std::string& path) {
  try {
    std::ostringstream out;
    MakeModule(model).save(out, {{"dynamix.actions", Format(model.actions)}});
    return WriteBytes(path, out.str());
  } catch (const c10::Error& error) {
    return Error{std::string("libtorch cannot write TorchScript: ") +
                 error.what_without_backtrace()};
  }
}

}  // namespace dynamix
