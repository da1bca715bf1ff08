#include <torch/torch.h>

#include "dynamix/training/networks.h"

namespace dynamix {
namespace {

namespace nn = torch::nn;

// Side of the image after LeNet's two convolutions and poolings.
int LeNetSide(int side) { return ((side - 4) / 2 - 4) / 2; }

struct LeNet : nn::Module {
  LeNet(const Widths& widths, const SampleShape& shape, int classes)
      : first(
            register_module("first", nn::Conv2d(nn::Conv2dOptions(shape.channels, widths(6), 5)))),
        second(register_module("second", nn::Conv2d(nn::Conv2dOptions(widths(6), widths(16), 5)))),
        third(register_module(
            "third", nn::Linear(widths(16) * LeNetSide(shape.height) * LeNetSide(shape.width),
                                widths(120)))),
        fourth(register_module("fourth", nn::Linear(widths(120), widths(84)))),
        fifth(register_module("fifth", nn::Linear(widths(84), classes))) {}

  at::Tensor Forward(const at::Tensor& images) {
    at::Tensor x = torch::max_pool2d(first->forward(images), 2).relu_();
    x = torch::max_pool2d(second->forward(x), 2).relu_().flatten(1);
    x = third->forward(x).relu_();
    return fifth->forward(fourth->forward(x).relu_());
  }

  nn::Conv2d first, second;
  nn::Linear third, fourth, fifth;
};

struct Cnn : nn::Module {
  Cnn(const Widths& widths, const SampleShape& shape, int classes) {
    int inputs = shape.channels;
    for (const int channels : {32, 64, 128}) {
      features->push_back(nn::Conv2d(nn::Conv2dOptions(inputs, widths(channels), 3).padding(1)));
      features->push_back(nn::MaxPool2d(2));
      features->push_back(nn::ReLU(nn::ReLUOptions(/*inplace=*/true)));
      inputs = widths(channels);
    }
    register_module("features", features);
    const int pixels = (shape.height / 8) * (shape.width / 8);
    classifier = register_module("classifier", nn::Linear(inputs * pixels, classes));
  }

  at::Tensor Forward(const at::Tensor& images) {
    return classifier->forward(features->forward(images).flatten(1));
  }

  nn::Sequential features;
  nn::Linear classifier{nullptr};
};

struct Mlp : nn::Module {
  Mlp(const Widths& widths, const SampleShape& shape, int classes)
      : first(register_module("first",
                              nn::Linear(static_cast<std::int64_t>(shape.size()), widths(256)))),
        second(register_module("second", nn::Linear(widths(256), widths(128)))),
        third(register_module("third", nn::Linear(widths(128), classes))) {}

  at::Tensor Forward(const at::Tensor& images) {
    const at::Tensor x = first->forward(images.flatten(1)).relu_();
    return third->forward(second->forward(x).relu_());
  }

  nn::Linear first, second, third;
};

}  // namespace

Model MakeMlp(const Widths& widths, const SampleShape& shape, int classes) {
  return Wrap(std::make_shared<Mlp>(widths, shape, classes));
}

Model MakeCnn(const Widths& widths, const SampleShape& shape, int classes) {
  return Wrap(std::make_shared<Cnn>(widths, shape, classes));
}

Model MakeLeNet(const Widths& widths, const SampleShape& shape, int classes) {
  return Wrap(std::make_shared<LeNet>(widths, shape, classes));
}

}  // namespace dynamix
