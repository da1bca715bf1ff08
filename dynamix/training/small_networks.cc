#include <torch/torch.h>

#include "dynamix/training/networks.h"

namespace dynamix {
namespace {

namespace nn = torch::nn;

struct LeNet : nn::Module {
  LeNet(const Widths& widths, const ImageShape& shape, int classes)
      : first(register_module(
            "first", nn::Conv2d(nn::Conv2dOptions(shape.channels, widths(6), 5)
                                    .padding(shape.height < 32 ? (32 - shape.height) / 2 : 0)))),
        second(register_module("second", nn::Conv2d(nn::Conv2dOptions(widths(6), widths(16), 5)))),
        third(register_module("third", nn::Linear(widths(16) * 25, widths(120)))),
        fourth(register_module("fourth", nn::Linear(widths(120), widths(84)))),
        fifth(register_module("fifth", nn::Linear(widths(84), classes))) {}

  at::Tensor Forward(const at::Tensor& images) {
    at::Tensor x = torch::max_pool2d(first->forward(images).relu_(), 2);
    x = torch::max_pool2d(second->forward(x).relu_(), 2).flatten(1);
    x = third->forward(x).relu_();
    return fifth->forward(fourth->forward(x).relu_());
  }

  nn::Conv2d first, second;
  nn::Linear third, fourth, fifth;
};

struct Mlp : nn::Module {
  Mlp(const Widths& widths, const ImageShape& shape, int classes)
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

Model MakeMlp(const Widths& widths, const ImageShape& shape, int classes) {
  return Wrap(std::make_shared<Mlp>(widths, shape, classes));
}

Model MakeLeNet(const Widths& widths, const ImageShape& shape, int classes) {
  return Wrap(std::make_shared<LeNet>(widths, shape, classes));
}

}  // namespace dynamix
