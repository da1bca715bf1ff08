#include "dynamix/training/model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <new>

#include "dynamix/core/input_error.h"
#include "dynamix/training/classifier.h"
#include "dynamix/training/real_convergence.h"
#include "dynamix/training/testing/sample_dataset.h"

namespace dynamix {
namespace {

std::int64_t CountOf(const std::string& name, double width, const SampleShape& shape, int classes) {
  return ParameterCount(MakeModel({.name = name, .width = width}, shape, classes, 1));
}

TEST(ModelTest, ParameterCountsAreThePublishedOnes) {
  const SampleShape fashion{1, 28, 28}, cifar{3, 32, 32};
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
  for (const SampleShape& shape : {SampleShape{1, 28, 28}, SampleShape{3, 32, 32}}) {
    const BatchReader reader(SampleDataset(8, 4, shape), {}, 1);
    for (const std::string& name : ModelNames(/*text=*/false)) {
      Classifier classifier({.name = name, .width = 0.0625}, reader, 1);
      const PassSums sums = classifier.Evaluate(0, 4);
      EXPECT_EQ(sums.samples, 4) << name;
      EXPECT_GT(sums.loss, 0) << name;
      EXPECT_EQ(classifier.model().has_batch_norm,
                name.starts_with("vgg") || name.starts_with("resnet"));
    }
  }
}

TEST(ModelTest, ATokenSeesOnlyThoseBeforeIt) {
  const Model model = MakeModel({.name = "transformer"}, {.tokens = 8}, 256, 1);
  EXPECT_EQ(ParameterCount(model), 133632);  // 56 positions of 64 channels less than with 64 tokens
  at::Tensor tokens = at::arange(16, at::kLong).view({2, 8});
  const at::Tensor scores = model.forward(tokens).view({2, 8, 256}).clone();
  tokens[0][5] = 200;
  const at::Tensor changed = model.forward(tokens).view({2, 8, 256}).ne(scores).any(2);
  for (int sequence = 0; sequence < 2; ++sequence)
    for (int token = 0; token < 8; ++token)
      EXPECT_EQ(changed[sequence][token].item<bool>(), sequence == 0 && token >= 5);
}

// Of a text's bytes: what is left without looking at those before.
double UnigramEntropy(const SampleSet& set) {
  std::array<double, 256> counts{};
  for (const std::uint8_t byte : set.labels) ++counts[byte];
  double entropy = 0;
  for (const double count : counts)
    if (count > 0) entropy -= count / set.labels.size() * std::log(count / set.labels.size());
  return entropy;
}

TEST(ModelTest, TransformersLearnAText) {
  const auto data = SampleText();
  const double entropy = UnigramEntropy(data->held_out);
  for (const std::string& name : ModelNames(/*text=*/true)) {
    RealConvergenceOptions options;
    options.model = {.name = name, .width = 0.5};
    options.optimizer = {.kind = OptimizerKind::kAdamW,
                         .learning_rate = 0.01,
                         .weight_decay = 0.01,
                         .base_batch = 16,
                         .schedule = Schedule::kWarmup,
                         .planned_samples = 16 * 150};
    options.held_out_samples = 60;
    RealConvergence job(options, data);
    EXPECT_GT(job.HeldOutLoss(), entropy) << name;
    const TrainingReport report = job.Run({10, 6}, 150);
    EXPECT_LT(job.HeldOutLoss(), 0.4 * entropy) << name;
    EXPECT_GT(job.HeldOutAccuracy(), 0.6) << name;
    EXPECT_LT(report.loss, entropy) << name << ": a loss per token, not per sequence";
    EXPECT_GT(report.noise_scale, 0) << name;
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

TEST(ModelTest, AModelForOtherSamplesIsRefused) {
  const auto refuse = [](const std::string& name, const SampleShape& shape,
                         const std::string& expected) {
    try {
      MakeModel({.name = name}, shape, 10, 1);
      FAIL() << "accepted " << name;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(expected));
    }
  };
  refuse("lenet", {.tokens = 64},
         "model for text = lenet is not allowed: expected one of transformer");
  refuse("transformer", {}, "model for images = transformer is not allowed: expected one of mlp");
}

}  // namespace
}  // namespace dynamix
