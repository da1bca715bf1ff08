// What the population trains: models small enough for one core, each with its data, the batch and
// the learning rates that suit it. No model appears here with data that learning sees it with
// (population_test.cc compares). A new line is all that a new model needs. Constant; thread-safe.
#pragma once

#include <vector>

#include "dynamix/job/workload.h"

namespace dynamix {

struct TunedRate {
  OptimizerKind kind;
  const char* name;
  double learning_rate;
};

struct TrainedModel {
  ModelOptions model;
  double base_batch;       // global; the rates belong to it
  double planned_samples;  // such that a run takes about ten seconds of a core
  int held_out_samples;    // on which the truth is measured
  std::vector<TunedRate> rates;
};

// Models of one name stand together.
const std::vector<TrainedModel>& TrainedModels();

}  // namespace dynamix
