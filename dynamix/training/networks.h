// What model.cc's factory builds from: one function per family, weights not yet drawn. Private to
// the room; libtorch's types are only declared here.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "dynamix/training/model.h"

namespace dynamix {

// Channel counts under a width factor.
struct Widths {
  double factor = 1;
  int operator()(int channels) const {
    return std::max(1, static_cast<int>(std::lround(channels * factor)));
  }
};

Model MakeMlp(const Widths& widths, const SampleShape& shape, int classes);
Model MakeCnn(const Widths& widths, const SampleShape& shape, int classes);
Model MakeLeNet(const Widths& widths, const SampleShape& shape, int classes);
// `depth`: 11, 16 or 19.
Model MakeVgg(int depth, const Widths& widths, const SampleShape& shape, int classes);
// `depth`: 18 or 34 (basic blocks), 50 (bottlenecks).
Model MakeResNet(int depth, const Widths& widths, const SampleShape& shape, int classes);

Model MakeTransformer(int layers, const Widths& widths, int tokens, int classes);

// `images` with zeros around them up to 32 x 32.
at::Tensor PadTo32(const at::Tensor& images);

// The Model of a network with at::Tensor Forward(const at::Tensor&).
template <typename Network>
Model Wrap(std::shared_ptr<Network> network) {
  Model model;
  model.forward = [network](const at::Tensor& inputs) { return network->Forward(inputs); };
  model.has_batch_norm = !network->buffers().empty();
  model.module = std::move(network);
  return model;
}

}  // namespace dynamix
