#include "dynamix/training/model.h"

#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>

#include "dynamix/core/input_error.h"
#include "dynamix/training/classifier.h"
#include "dynamix/training/real_convergence.h"
#include "dynamix/training/testing/sample_dataset.h"

namespace dynamix {
namespace {

std::int64_t CountOf(const std::string& name, double width, const ImageShape& shape, int classes) {
  return ParameterCount(MakeModel({.name = name, .width = width}, shape, classes, 1));
}

TEST(ModelTest, ParameterCountsAreThePublishedOnes) {
  const ImageShape fashion{1, 28, 28}, cifar{3, 32, 32};
  EXPECT_EQ(CountOf("lenet", 1, fashion, 10), 44426);
  EXPECT_EQ(CountOf("lenet", 1, {1, 32, 32}, 10), 61706);
  EXPECT_EQ(CountOf("cnn", 1, cifar, 10), 113738);
  EXPECT_EQ(CountOf("mlp", 1, fashion, 10), 784 * 256 + 256 + 256 * 128 + 128 + 1290);
  EXPECT_EQ(CountOf("vgg11", 1, cifar, 10), 9231114);
  EXPECT_EQ(CountOf("vgg16", 1, cifar, 10), 14728266);
  EXPECT_EQ(CountOf("vgg19", 1, cifar, 10), 20040522);
  EXPECT_EQ(CountOf("resnet18", 1, cifar, 10), 11173962);
  EXPECT_EQ(CountOf("resnet34", 1, cifar, 10), 21282122);
  EXPECT_EQ(CountOf("resnet50", 1, cifar, 10), 23520842);
}

TEST(ModelTest, EveryModelTrainsOnEveryShape) {
  for (const ImageShape& shape : {ImageShape{1, 28, 28}, ImageShape{3, 32, 32}}) {
    const BatchReader reader(SampleDataset(8, 4, shape), {}, 1);
    for (const std::string& name : ModelNames()) {
      Classifier classifier({.name = name, .width = 0.0625}, reader, 1);
      const PassSums sums = classifier.Evaluate(0, 4);
      EXPECT_EQ(sums.samples, 4) << name;
      EXPECT_GT(sums.loss, 0) << name;
      EXPECT_EQ(classifier.model().has_batch_norm,
                name.starts_with("vgg") || name.starts_with("resnet"));
    }
  }
}

TEST(ClassifierTest, EvaluationTakesSmallerPassesWhenMemoryIsShort) {
  Classifier classifier({.name = "mlp", .width = 0.1}, BatchReader(SampleDataset(), {}, 1), 1);
  const PassSums enough = classifier.Evaluate(0, 50);
  classifier.model().forward = [forward = classifier.model().forward](const at::Tensor& images) {
    if (images.size(0) > 7) throw std::bad_alloc();
    return forward(images);
  };
  const PassSums short_of_memory = classifier.Evaluate(0, 50);
  EXPECT_EQ(short_of_memory.samples, 50);
  EXPECT_EQ(short_of_memory.correct, enough.correct);
  EXPECT_NEAR(short_of_memory.loss, enough.loss, 1e-3);
}

TEST(ModelTest, WeightsDependOnTheSeedAlone) {
  const auto values = [](std::uint64_t seed) {
    RealConvergenceOptions options;
    options.model = {.name = "mlp", .width = 0.1};
    options.seed = seed;
    options.held_out_samples = 10;
    return RealConvergence(options, SampleDataset()).parameters().CopyValues();
  };
  EXPECT_EQ(values(1), values(1));
  EXPECT_NE(values(1), values(2));
}

TEST(ModelTest, UnknownNamesListTheKnownOnes) {
  try {
    MakeModel({.name = "alexnet"}, {}, 10, 1);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("resnet50"));
  }
}

}  // namespace
}  // namespace dynamix
