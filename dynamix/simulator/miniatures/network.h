// The network of a miniature: an MLP with one or two hidden layers and softmax cross-entropy, as a
// function of one flat vector of parameters, so that an optimizer is one loop.
//
// Layer l of `in` inputs and `out` outputs is y = x W + b, W stored [in][PadToLanes(out)], then b;
// layers follow each other. Padding is zero and stays zero under every optimizer. A
// MiniatureNetwork holds only sizes and scratch memory: parameters belong to the caller. One object
// per thread. Fails only on sizes that Miniature refuses.
#pragma once

#include <cstdint>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/job/miniature_options.h"
#include "dynamix/simulator/miniatures/kernels.h"

namespace dynamix {

class MiniatureNetwork {
 public:
  // Samples of one pass; more are done in several, so that a pass stays in the L2 cache.
  static constexpr int kPass = 128;

  explicit MiniatureNetwork(const MiniatureShape& shape);

  const MiniatureShape& shape() const { return shape_; }
  int parameter_count() const { return parameter_count_; }  // with padding
  int input_stride() const { return input_stride_; }

  // Normal weights of deviation scale * sqrt(gain / inputs of the layer), gain 2 for ReLU (He et
  // al. 2015), 1 for tanh and the output layer; biases 0.
  AlignedFloats RandomParameters(Rng& rng, double scale) const;

  // Must be called after each change of `parameters`, before AddGradient and Evaluate; borrows them
  // until then.
  void SetParameters(const AlignedFloats& parameters);

  // Adds the SUM over samples of the loss gradient to `gradient`; inputs have row stride
  // input_stride() and zero padding; count <= kPass.
  LossSum AddGradient(int count, const float* inputs, const std::uint8_t* labels, float* gradient);
  // The loss alone.
  LossSum Evaluate(int count, const float* inputs, const std::uint8_t* labels);
  // Logits of `count` samples, row stride kLanes, valid until the next call.
  const float* Forward(int count, const float* inputs);

  // Layer sizes as a reader of the flat vector needs them (tests, export).
  struct Layer {
    int inputs, outputs;
    int stride;      // PadToLanes(outputs)
    int weights_at;  // offset of W
    int biases_at;   // offset of b
  };
  const std::vector<Layer>& layers() const { return layers_; }

 private:
  MiniatureShape shape_;
  int input_stride_;
  int parameter_count_ = 0;
  std::vector<Layer> layers_;
  const float* parameters_ = nullptr;
  AlignedFloats zeros_;
  std::vector<AlignedFloats> outputs_;     // of each layer, kPass rows
  std::vector<AlignedFloats> gradients_;   // of the loss by each hidden layer's output
  std::vector<AlignedFloats> transposed_;  // W of each layer but the first, [out][PadToLanes(in)]
};

}  // namespace dynamix
