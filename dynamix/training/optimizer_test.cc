// The optimizers on flat parameters against torch's own, on the same gradients.
#include "dynamix/training/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "dynamix/training/parameters.h"

namespace dynamix {
namespace {

constexpr double kSamples = 7, kRate = 0.01;

// A model of two tensors that both optimizers step on: ours on the sum over kSamples samples,
// torch's on the mean.
struct TwoTensors {
  std::vector<torch::Tensor> ours, theirs;

  TwoTensors() {
    torch::manual_seed(5);
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{30, 20}, {20}}) {
      ours.push_back(torch::randn(shape).requires_grad_());
      theirs.push_back(ours.back().detach().clone().requires_grad_());
    }
  }

  void ExpectSameSteps(const OptimizerOptions& options, torch::optim::Optimizer& theirs_optimizer) {
    Parameters parameters(ours, 64);  // small buckets: one per tensor
    ASSERT_EQ(parameters.buckets().size(), 2u);
    Optimizer optimizer(options, parameters);
    for (int step = 0; step < 5; ++step) {
      for (std::size_t i = 0; i < ours.size(); ++i) {
        const torch::Tensor gradient = torch::randn_like(theirs[i]);
        theirs[i].mutable_grad() = gradient;
        ours[i].mutable_grad().copy_(gradient * kSamples);
      }
      optimizer.Step(kSamples, kRate);
      theirs_optimizer.step();
      for (std::size_t i = 0; i < ours.size(); ++i)
        EXPECT_LT((ours[i] - theirs[i]).abs().max().item<float>(), 2e-6) << "step " << step;
    }
  }
};

TEST(OptimizerTest, SgdStepsEqualTorchSgd) {
  for (const double momentum : {0.0, 0.9}) {
    TwoTensors both;
    torch::optim::SGD torch_sgd(both.theirs, torch::optim::SGDOptions(kRate).momentum(momentum));
    both.ExpectSameSteps({.kind = OptimizerKind::kSgd, .momentum = momentum}, torch_sgd);
  }
}

TEST(OptimizerTest, AdamStepsEqualTorchAdam) {
  TwoTensors both;
  torch::optim::Adam torch_adam(both.theirs, torch::optim::AdamOptions(kRate));
  both.ExpectSameSteps({.kind = OptimizerKind::kAdam}, torch_adam);
}

TEST(OptimizerTest, AdamWStepsEqualTorchAdamW) {
  for (const double decay : {0.0, 0.1, 1.0}) {
    TwoTensors both;
    torch::optim::AdamW torch_adamw(both.theirs,
                                    torch::optim::AdamWOptions(kRate).weight_decay(decay));
    both.ExpectSameSteps({.kind = OptimizerKind::kAdamW, .weight_decay = decay}, torch_adamw);
  }
}

}  // namespace
}  // namespace dynamix
