#include "dynamix/simulator/miniatures/network.h"

#include <gtest/gtest.h>

#include <vector>

namespace dynamix {
namespace {

struct Batch {
  AlignedFloats inputs;
  std::vector<std::uint8_t> labels;
};

Batch RandomBatch(const MiniatureNetwork& network, int count, Rng& rng) {
  Batch batch{AlignedFloats(count * network.input_stride(), 0.0f),
              std::vector<std::uint8_t>(count)};
  for (int s = 0; s < count; ++s) {
    for (int d = 0; d < network.shape().inputs; ++d)
      batch.inputs[s * network.input_stride() + d] = static_cast<float>(rng.Normal());
    batch.labels[s] = static_cast<std::uint8_t>(rng.Below(network.shape().classes));
  }
  return batch;
}

const std::vector<MiniatureShape> kShapes = {{20, 8, 0, 4, Activation::kTanh},
                                             {49, 40, 0, 10, Activation::kTanh},
                                             {17, 12, 12, 5, Activation::kTanh},
                                             {49, 24, 0, 10, Activation::kRelu},
                                             {33, 16, 9, 16, Activation::kRelu}};

TEST(MiniatureNetworkTest, GradientEqualsFiniteDifferences) {
  Rng rng(5);
  for (const MiniatureShape& shape : kShapes) {
    MiniatureNetwork network(shape);
    const Batch batch = RandomBatch(network, 30, rng);
    AlignedFloats parameters = network.RandomParameters(rng, 1);
    AlignedFloats gradient(network.parameter_count(), 0.0f);
    network.SetParameters(parameters);
    network.AddGradient(30, batch.inputs.data(), batch.labels.data(), gradient.data());
    // Along a random direction of all real parameters, so that rounding averages out.
    AlignedFloats direction = network.RandomParameters(rng, 1);
    double slope = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i)
      slope += static_cast<double>(gradient[i]) * direction[i];
    const auto loss_at = [&](double step) {
      AlignedFloats moved = parameters;
      for (std::size_t i = 0; i < moved.size(); ++i)
        moved[i] += static_cast<float>(step * direction[i]);
      network.SetParameters(moved);
      return network.Evaluate(30, batch.inputs.data(), batch.labels.data()).loss;
    };
    constexpr double kStep = 1e-3;
    const double difference = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    EXPECT_NEAR(slope, difference, 0.01 * std::abs(difference) + 0.02);
  }
}

TEST(MiniatureNetworkTest, GradientAddsUpOverParts) {
  Rng rng(6);
  for (const MiniatureShape& shape : kShapes) {
    MiniatureNetwork network(shape);
    const Batch batch = RandomBatch(network, 100, rng);
    const AlignedFloats parameters = network.RandomParameters(rng, 1);
    network.SetParameters(parameters);
    AlignedFloats whole(network.parameter_count(), 0.0f), parts = whole;
    network.AddGradient(100, batch.inputs.data(), batch.labels.data(), whole.data());
    for (int at = 0, size = 1; at < 100; at += size, size = std::min(size * 3, 100 - at)) {
      network.AddGradient(size, batch.inputs.data() + at * network.input_stride(),
                          batch.labels.data() + at, parts.data());
    }
    for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], parts[i], 1e-4);
  }
}

TEST(MiniatureNetworkTest, PaddingHasNoGradient) {
  Rng rng(7);
  for (const MiniatureShape& shape : kShapes) {
    MiniatureNetwork network(shape);
    const Batch batch = RandomBatch(network, 64, rng);
    const AlignedFloats parameters = network.RandomParameters(rng, 1);
    network.SetParameters(parameters);
    AlignedFloats gradient(network.parameter_count(), 0.0f);
    network.AddGradient(64, batch.inputs.data(), batch.labels.data(), gradient.data());
    for (const auto& layer : network.layers())
      for (int i = 0; i <= layer.inputs; ++i)  // the row after the weights is the bias
        for (int o = layer.outputs; o < layer.stride; ++o)
          ASSERT_EQ(gradient[layer.weights_at + i * layer.stride + o], 0.0f);
  }
}

}  // namespace
}  // namespace dynamix
