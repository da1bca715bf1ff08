// SGD with momentum, Adam and AdamW on flat parameters. The gradient comes as a sum over samples and
// is divided here, by the number of samples really used.
//
//   g := sum / samples
//
//   SGD    v := momentum v + g
//          w := w - rate v
//
//   Adam   m := beta1 m + (1 - beta1) g                            beta1 = momentum
//          v := beta2 v + (1 - beta2) g^2                          beta2 = 0.999
//          w := w - rate (m / (1 - beta1^t))
//                   / (sqrt(v / (1 - beta2^t)) + epsilon)          epsilon = 1e-8
//
//   AdamW  w := w - rate weight_decay w, then as Adam
//
// (Adam: Kingma and Ba 2015; AdamW: Loshchilov and Hutter 2019.) The learning rate of an iteration
// follows the global batch and the samples seen (core/learning_rate.h). Not thread-safe; never
// fails.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dynamix/job/optimizer_options.h"

namespace at {
class Tensor;
}

namespace dynamix {

class Parameters;

class Optimizer {
 public:
  // `parameters` is borrowed: model, parameters and optimizer belong to one worker and die
  // together.
  Optimizer(const OptimizerOptions& options, Parameters& parameters);
  ~Optimizer();

  // One step on the parameters' gradients, the sum over `samples` samples.
  void Step(double samples, double learning_rate);

  // What a checkpoint holds: flat state (SGD: velocity; Adam, AdamW: both moments) and steps taken.
  const std::vector<at::Tensor>& state() const { return state_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  const OptimizerOptions& options() const { return options_; }

 private:
  void StepSgd(std::size_t bucket, double scale, double learning_rate);
  void StepAdam(std::size_t bucket, double scale, double learning_rate);

  OptimizerOptions options_;
  Parameters& parameters_;
  std::vector<at::Tensor> state_;
  std::vector<std::vector<at::Tensor>> bucket_state_;  // views: [state][bucket]
  std::int64_t steps_ = 0;
};

}  // namespace dynamix
