#include <torch/torch.h>

#include <array>
#include <vector>

#include "dynamix/training/networks.h"

namespace dynamix {
namespace {

namespace nn = torch::nn;

nn::Conv2d Convolution(int inputs, int outputs, int size, int stride) {
  return nn::Conv2d(
      nn::Conv2dOptions(inputs, outputs, size).stride(stride).padding(size / 2).bias(false));
}

// Convolutions with batch norm, ReLU between them, and a shortcut around all.
struct Block : nn::Module {
  struct Layer {
    int outputs, size, stride;
  };

  Block(int inputs, int stride, const std::vector<Layer>& layers) {
    int channels = inputs;
    for (const Layer& layer : layers) {
      if (!path->is_empty()) path->push_back(nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
      path->push_back(Convolution(channels, layer.outputs, layer.size, layer.stride));
      path->push_back(nn::BatchNorm2d(layer.outputs));
      channels = layer.outputs;
    }
    if (stride != 1 || inputs != channels) {
      shortcut->push_back(Convolution(inputs, channels, 1, stride));
      shortcut->push_back(nn::BatchNorm2d(channels));
    }
    register_module("path", path);
    register_module("shortcut", shortcut);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor around = shortcut->is_empty() ? x : shortcut->forward(x);
    return (path->forward(x) + around).relu_();
  }

  nn::Sequential path, shortcut;
};

struct ResNet : nn::Module {
  ResNet(int depth, const Widths& widths, const SampleShape& shape, int classes) {
    const std::array<int, 4> blocks = depth == 18 ? std::array{2, 2, 2, 2} : std::array{3, 4, 6, 3};
    int inputs = widths(64);
    stem = register_module("stem", Convolution(shape.channels, inputs, 3, 1));
    stem_norm = register_module("stem_norm", nn::BatchNorm2d(inputs));
    for (int stage = 0; stage < 4; ++stage) {
      const int channels = widths(64 << stage);
      for (int block = 0; block < blocks[stage]; ++block) {
        const int stride = stage > 0 && block == 0 ? 2 : 1;
        std::vector<Block::Layer> layers = {{channels, 3, stride}, {channels, 3, 1}};
        if (depth == 50) layers = {{channels, 1, 1}, {channels, 3, stride}, {4 * channels, 1, 1}};
        stages->push_back(std::make_shared<Block>(inputs, stride, layers));
        inputs = layers.back().outputs;
      }
    }
    register_module("stages", stages);
    classifier = register_module("classifier", nn::Linear(inputs, classes));
  }

  at::Tensor Forward(const at::Tensor& images) {
    at::Tensor x = stem_norm->forward(stem->forward(PadTo32(images))).relu_();
    x = stages->forward(x);
    return classifier->forward(x.mean({2, 3}));
  }

  nn::Conv2d stem{nullptr};
  nn::BatchNorm2d stem_norm{nullptr};
  nn::Sequential stages;
  nn::Linear classifier{nullptr};
};

}  // namespace

Model MakeResNet(int depth, const Widths& widths, const SampleShape& shape, int classes) {
  return Wrap(std::make_shared<ResNet>(depth, widths, shape, classes));
}

}  // namespace dynamix
