// Models for small images and for text, by name, with a factor on their channel counts.
//
//   mlp                            two hidden layers (256, 128)
//   lenet                          LeCun et al. 1998, ReLU, max pooling; sides of 16 or more
//   cnn                            three convolutions (32, 64, 128), one linear layer
//   vgg11, vgg16, vgg19            Simonyan and Zisserman 2015, batch norm, one linear layer
//   resnet18, resnet34, resnet50   He et al. 2016, 3 x 3 stem without pooling
//   transformer, transformer4      for text: causal, pre-norm, 2 and 4 layers of 64 channels
//
// vgg and resnet have the form usual for CIFAR; images smaller than 32 x 32 are padded with zeros
// for them. Weights are drawn from the given seed only, U(-1/sqrt(fan_in), 1/sqrt(fan_in)). Throws
// InputError for a name that is unknown, or not for such samples. libtorch's types are only declared
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dynamix/job/workload.h"
#include "dynamix/training/dataset.h"

namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}

namespace dynamix {

struct Model {
  // Shared because libtorch hands out modules in no other way.
  std::shared_ptr<torch::nn::Module> module;
  // Images, or sequences of tokens, to a row of scores per label: one score per class.
  std::function<at::Tensor(const at::Tensor&)> forward;
  // Batch statistics are of one pass: each worker's samples must go through passes of their own.
  bool has_batch_norm = false;
};

// Those for images, or those for text.
std::vector<std::string> ModelNames(bool text);

Model MakeModel(const ModelOptions& options, const SampleShape& shape, int classes,
                std::uint64_t seed);

// Trainable numbers of the model.
std::int64_t ParameterCount(const Model& model);

}  // namespace dynamix
