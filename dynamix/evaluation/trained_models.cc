// The rates have the lowest held-out loss after `planned_samples` at a constant rate and the base
// batch on four equal workers, of rates a factor of two apart, among those whose double still
// trains. scripts/tune-rates prints the losses; made with seed 1. AdamW has Adam's rate: in runs
// this short they differ little.
#include "dynamix/evaluation/trained_models.h"

namespace dynamix {
namespace {

TunedRate WithSgd(double rate) { return {OptimizerKind::kSgd, "sgd", rate}; }
TunedRate WithAdam(double rate) { return {OptimizerKind::kAdam, "adam", rate}; }
TunedRate WithAdamW(double rate) { return {OptimizerKind::kAdamW, "adamw", rate}; }

}  // namespace

const std::vector<TrainedModel>& TrainedModels() {
  // Base batch, planned samples, held-out samples.
  static const std::vector<TrainedModel> models = {
      {{"lenet", 0.5, "cifar10"},
       64,
       64000,
       1000,
       {WithSgd(0.02), WithAdam(0.004), WithAdamW(0.004)}},
      {{"mlp", 0.25, "cifar10"},
       64,
       96000,
       1000,
       {WithSgd(0.005), WithAdam(0.001), WithAdamW(0.001)}},
      {{"cnn", 0.125, "fashion_mnist"},
       64,
       38400,
       1000,
       {WithSgd(0.04), WithAdam(0.008), WithAdamW(0.008)}},
      {{"cnn", 0.125, "cifar10"},
       64,
       38400,
       1000,
       {WithSgd(0.02), WithAdam(0.004), WithAdamW(0.004)}},
      {{"vgg11", 0.0625, "fashion_mnist"},
       64,
       25600,
       500,
       {WithSgd(0.01), WithAdam(0.002), WithAdamW(0.002)}},
      {{"resnet18", 0.0625, "cifar10"},
       64,
       19200,
       500,
       {WithSgd(0.08), WithAdam(0.002), WithAdamW(0.002)}},
      {{"transformer", 0.5, "bible"}, 64, 12800, 100, {WithAdam(0.008), WithAdamW(0.008)}},
  };
  return models;
}

}  // namespace dynamix
