#include "dynamix/training/model.h"

#include <torch/torch.h>

#include <cmath>

#include "dynamix/core/input_error.h"
#include "dynamix/core/rng.h"
#include "dynamix/job/catalogue.h"
#include "dynamix/training/networks.h"

namespace dynamix {
namespace {

namespace nn = torch::nn;

// libtorch draws initial weights from a global generator; these depend on the seed alone.
void Initialize(nn::Module& module, Rng rng) {
  const torch::NoGradGuard no_grad;
  for (const auto& child : module.modules(/*include_self=*/false)) {
    if (!child->as<nn::Conv2d>() && !child->as<nn::Linear>() && !child->as<nn::Embedding>())
      continue;
    double bound = 0;
    for (at::Tensor& parameter : child->parameters(/*recurse=*/false)) {
      if (parameter.dim() > 1)  // the weight comes first and settles the fan-in
        bound = 1 / std::sqrt(static_cast<double>(parameter.numel() / parameter.size(0)));
      float* values = parameter.data_ptr<float>();
      for (std::int64_t i = 0; i < parameter.numel(); ++i)
        values[i] = static_cast<float>(rng.Uniform(-bound, bound));
    }
  }
}

void RequireModelFor(const SampleShape& shape, const std::string& name) {
  std::string choices;
  for (const std::string& known : ModelNames(shape.is_text())) {
    if (known == name) return;
    choices += (choices.empty() ? "one of " : ", ") + known;
  }
  throw InputError::OutOfRange(shape.is_text() ? "model for text" : "model for images", name,
                               choices);
}

}  // namespace

std::vector<std::string> ModelNames(bool text) {
  std::vector<std::string> names;
  for (const KnownModel& model : KnownModels())
    if (model.text == text) names.emplace_back(model.name);
  return names;
}

Model MakeModel(const ModelOptions& options, const SampleShape& shape, int classes,
                std::uint64_t seed) {
  RequireInRange("model width", options.width, 1e-3, 8.0);
  const Widths widths{options.width};
  const std::string& name = options.name;
  RequireModelFor(shape, name);
  Model model;
  if (name == "mlp") {
    model = MakeMlp(widths, shape, classes);
  } else if (name == "lenet") {
    model = MakeLeNet(widths, shape, classes);
  } else if (name == "cnn") {
    model = MakeCnn(widths, shape, classes);
  } else if (name == "vgg11" || name == "vgg16" || name == "vgg19") {
    model = MakeVgg(std::stoi(name.substr(3)), widths, shape, classes);
  } else if (name == "resnet18" || name == "resnet34" || name == "resnet50") {
    model = MakeResNet(std::stoi(name.substr(6)), widths, shape, classes);
  } else {
    model = MakeTransformer(name == "transformer" ? 2 : 4, widths, shape.tokens, classes);
  }
  Initialize(*model.module, Rng(seed));
  return model;
}

std::int64_t ParameterCount(const Model& model) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : model.module->parameters()) count += parameter.numel();
  return count;
}

}  // namespace dynamix
