// The miniatures' kernels against libtorch: autograd, torch::optim::SGD and torch::optim::AdamW on
// the same weights and samples.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "dynamix/simulator/miniatures/network.h"

namespace dynamix {
namespace {

constexpr int kSamples = 128;

struct Case {
  MiniatureNetwork network;
  AlignedFloats parameters, inputs;
  std::vector<std::uint8_t> labels;
  std::vector<torch::Tensor> tensors;  // weight [in, out], bias of each layer; with gradients
  torch::Tensor input_tensor, label_tensor;

  Case(const MiniatureShape& shape, std::uint64_t seed) : network(shape) {
    Rng rng(seed);
    parameters = network.RandomParameters(rng, 1);
    for (const auto& layer : network.layers())
      for (int o = 0; o < layer.outputs; ++o)
        parameters[layer.biases_at + o] = static_cast<float>(0.1 * rng.Normal());
    inputs.assign(kSamples * network.input_stride(), 0.0f);
    input_tensor = torch::empty({kSamples, shape.inputs});
    label_tensor = torch::empty({kSamples}, torch::kLong);
    for (int s = 0; s < kSamples; ++s) {
      for (int d = 0; d < shape.inputs; ++d) {
        inputs[s * network.input_stride() + d] = static_cast<float>(rng.Normal());
        input_tensor[s][d] = inputs[s * network.input_stride() + d];
      }
      labels.push_back(static_cast<std::uint8_t>(rng.Below(shape.classes)));
      label_tensor[s] = static_cast<std::int64_t>(labels.back());
    }
    for (const auto& layer : network.layers()) {
      const auto strided = torch::from_blob(parameters.data() + layer.weights_at,
                                            {layer.inputs, layer.outputs}, {layer.stride, 1});
      tensors.push_back(strided.clone().contiguous().requires_grad_());
      const auto bias = torch::from_blob(parameters.data() + layer.biases_at, {layer.outputs});
      tensors.push_back(bias.clone().requires_grad_());
    }
  }

  torch::Tensor TorchLoss() {
    torch::Tensor x = input_tensor;
    for (std::size_t l = 0; l < tensors.size(); l += 2) {
      x = x.matmul(tensors[l]) + tensors[l + 1];
      if (l + 2 == tensors.size()) break;
      x = network.shape().activation == Activation::kRelu ? x.relu() : x.tanh();
    }
    return torch::nn::functional::cross_entropy(x, label_tensor);
  }

  // Largest difference between `flat` and the tensors (or their gradients).
  double Difference(const AlignedFloats& flat, double scale, bool gradients) {
    double largest = 0;
    for (std::size_t l = 0; l < network.layers().size(); ++l) {
      const auto& layer = network.layers()[l];
      const torch::Tensor weights = gradients ? tensors[2 * l].grad() : tensors[2 * l];
      const torch::Tensor biases = gradients ? tensors[2 * l + 1].grad() : tensors[2 * l + 1];
      const auto weight_of = weights.accessor<float, 2>();
      const auto bias_of = biases.accessor<float, 1>();
      for (int o = 0; o < layer.outputs; ++o) {
        for (int i = 0; i < layer.inputs; ++i) {
          const double own = flat[layer.weights_at + i * layer.stride + o] * scale;
          largest = std::max(largest, std::abs(own - weight_of[i][o]));
        }
        largest = std::max(largest, std::abs(flat[layer.biases_at + o] * scale - bias_of[o]));
      }
    }
    return largest;
  }

  AlignedFloats Gradient(double* loss = nullptr) {
    AlignedFloats gradient(network.parameter_count(), 0.0f);
    network.SetParameters(parameters);
    const LossSum sum =
        network.AddGradient(kSamples, inputs.data(), labels.data(), gradient.data());
    if (loss != nullptr) *loss = sum.loss / kSamples;
    return gradient;
  }
};

const std::vector<MiniatureShape> kShapes = {{49, 32, 0, 10, Activation::kRelu},
                                             {49, 40, 0, 10, Activation::kTanh},
                                             {20, 8, 0, 4, Activation::kTanh},
                                             {33, 24, 24, 7, Activation::kRelu},
                                             {49, 13, 13, 10, Activation::kTanh}};

TEST(MiniatureTorchTest, LossAndGradientEqualAutograd) {
  for (const MiniatureShape& shape : kShapes) {
    Case both(shape, 17);
    const torch::Tensor expected = both.TorchLoss();
    expected.backward();
    double loss = 0;
    const AlignedFloats gradient = both.Gradient(&loss);
    EXPECT_NEAR(loss, expected.item<double>(), 1e-5);
    EXPECT_LT(both.Difference(gradient, 1.0 / kSamples, true), 1e-5);
  }
}

TEST(MiniatureTorchTest, MomentumStepsEqualTorchSgd) {
  for (const MiniatureShape& shape : kShapes) {
    Case both(shape, 18);
    torch::optim::SGD optimizer(both.tensors, torch::optim::SGDOptions(0.1).momentum(0.9));
    AlignedFloats velocity(both.network.parameter_count(), 0.0f);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      both.TorchLoss().backward();
      optimizer.step();
      const AlignedFloats gradient = both.Gradient();
      SgdStep(both.network.parameter_count(), gradient.data(), 1.0f / kSamples, 0.1f, 0.9f,
              velocity.data(), both.parameters.data());
      EXPECT_LT(both.Difference(both.parameters, 1, false), 1e-5) << "step " << step;
    }
  }
}

void ExpectAdamSteps(Case& both, torch::optim::Optimizer& optimizer, double weight_decay) {
  AlignedFloats first(both.network.parameter_count(), 0.0f), second = first;
  for (int step = 1; step <= 3; ++step) {
    optimizer.zero_grad();
    both.TorchLoss().backward();
    optimizer.step();
    const AlignedFloats gradient = both.Gradient();
    AdamStep(both.network.parameter_count(), gradient.data(), 1.0f / kSamples,
             MakeAdamFactors(0.01, 0.9, weight_decay, step), first.data(), second.data(),
             both.parameters.data());
    // Adam divides by |g|: where a gradient is all rounding, so is the step's direction. 1e-4 is
    // 1 % of a step.
    EXPECT_LT(both.Difference(both.parameters, 1, false), 1e-4) << "step " << step;
  }
}

TEST(MiniatureTorchTest, AdamStepsEqualTorchAdam) {
  for (const MiniatureShape& shape : kShapes) {
    Case both(shape, 19);
    torch::optim::Adam optimizer(both.tensors, torch::optim::AdamOptions(0.01));
    ExpectAdamSteps(both, optimizer, 0);
  }
}

TEST(MiniatureTorchTest, DecayedStepsEqualTorchAdamW) {
  for (const MiniatureShape& shape : kShapes) {
    Case both(shape, 20);
    torch::optim::AdamW optimizer(both.tensors, torch::optim::AdamWOptions(0.01).weight_decay(0.5));
    ExpectAdamSteps(both, optimizer, 0.5);
  }
}

}  // namespace
}  // namespace dynamix
