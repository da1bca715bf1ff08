// The rates have the lowest held-out loss after `planned_samples` at a constant rate and the base
// batch on four equal workers, of rates a factor of two apart, among those whose double still
// trains. scripts/tune-rates prints the losses; made with seed 1. AdamW has Adam's rate: in runs
// this short they differ little.
#include "dynamix/evaluation/trained_models.h"

namespace dynamix {
namespace {

TunedRate Sgd(double rate) { return {OptimizerKind::kSgd, "sgd", rate}; }
TunedRate Adam(double rate) { return {OptimizerKind::kAdam, "adam", rate}; }
TunedRate AdamW(double rate) { return {OptimizerKind::kAdamW, "adamw", rate}; }

}  // namespace

const std::vector<TrainedModel>& TrainedModels() {
  // Base batch, planned samples, held-out samples.
  static const std::vector<TrainedModel> models = {
      {{"lenet", 0.5, "cifar10"}, 64, 64000, 1000, {Sgd(0.02), Adam(0.004), AdamW(0.004)}},
      {{"mlp", 0.25, "cifar10"}, 64, 96000, 1000, {Sgd(0.005), Adam(0.001), AdamW(0.001)}},
      {{"cnn", 0.125, "fashion_mnist"}, 64, 38400, 1000, {Sgd(0.04), Adam(0.008), AdamW(0.008)}},
      {{"cnn", 0.125, "cifar10"}, 64, 38400, 1000, {Sgd(0.02), Adam(0.004), AdamW(0.004)}},
      {{"vgg11", 0.0625, "fashion_mnist"}, 64, 25600, 500, {Sgd(0.01), Adam(0.002), AdamW(0.002)}},
      {{"resnet18", 0.0625, "cifar10"}, 64, 19200, 500, {Sgd(0.08), Adam(0.002), AdamW(0.002)}},
      {{"transformer", 0.5, "bible"}, 64, 12800, 100, {Adam(0.008), AdamW(0.008)}},
  };
  return models;
}

}  // namespace dynamix
