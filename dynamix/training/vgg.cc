#include <torch/torch.h>

#include <vector>

#include "dynamix/training/networks.h"

namespace dynamix {
namespace {

namespace nn = torch::nn;

constexpr int kPool = 0;

std::vector<int> Layers(int depth) {
  // Convolutions per stage, of 64, 128, 256, 512 and 512 channels.
  const std::vector<int> stages = depth == 11   ? std::vector<int>{1, 1, 2, 2, 2}
                                  : depth == 16 ? std::vector<int>{2, 2, 3, 3, 3}
                                                : std::vector<int>{2, 2, 4, 4, 4};
  std::vector<int> layers;
  int channels = 64;
  for (const int convolutions : stages) {
    layers.insert(layers.end(), convolutions, channels);
    layers.push_back(kPool);
    if (channels < 512) channels *= 2;
  }
  return layers;
}

struct Vgg : nn::Module {
  Vgg(int depth, const Widths& widths, const SampleShape& shape, int classes) {
    int inputs = shape.channels;
    for (const int channels : Layers(depth)) {
      if (channels == kPool) {
        features->push_back(nn::MaxPool2d(2));
        continue;
      }
      const int outputs = widths(channels);
      features->push_back(nn::Conv2d(nn::Conv2dOptions(inputs, outputs, 3).padding(1)));
      features->push_back(nn::BatchNorm2d(outputs));
      features->push_back(nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
      inputs = outputs;
    }
    register_module("features", features);
    classifier = register_module("classifier", nn::Linear(inputs, classes));
  }

  at::Tensor Forward(const at::Tensor& images) {
    return classifier->forward(features->forward(PadTo32(images)).flatten(1));
  }

  nn::Sequential features;
  nn::Linear classifier{nullptr};
};

}  // namespace

Model MakeVgg(int depth, const Widths& widths, const SampleShape& shape, int classes) {
  return Wrap(std::make_shared<Vgg>(depth, widths, shape, classes));
}

at::Tensor PadTo32(const at::Tensor& images) {
  const std::int64_t down = 32 - images.size(2), right = 32 - images.size(3);
  if (down <= 0 && right <= 0) return images;
  return at::constant_pad_nd(images, {right / 2, right - right / 2, down / 2, down - down / 2});
}

}  // namespace dynamix
