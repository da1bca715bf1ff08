// Backward pass. Rows are samples, D_l is the gradient by the pre-activation of layer l of L, Y_l
// the output of layer l, and Y_0 the inputs:
//
//   D_L     = softmax - one hot
//   dW_l    = Y_{l-1}^T D_l
//   db_l    = column sums of D_l
//   D_{l-1} = (D_l W_l^T) * f'(Y_{l-1})        element by element
#include "dynamix/simulator/miniatures/network.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/check.h"

namespace dynamix {

MiniatureNetwork::MiniatureNetwork(const MiniatureShape& shape)
    : shape_(shape), input_stride_(PadToLanes(shape.inputs)) {
  DYNAMIX_CHECK(shape.inputs > 0 && shape.hidden > 0 && shape.second_hidden >= 0 &&
                    shape.classes > 1 && shape.classes <= kLanes,
                "network sizes were validated");
  std::vector<int> sizes = {shape.inputs, shape.hidden};
  if (shape.second_hidden > 0) sizes.push_back(shape.second_hidden);
  sizes.push_back(shape.classes);
  int widest = 0;
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    const int stride = PadToLanes(sizes[l + 1]);
    const int weights_at = parameter_count_;
    const int biases_at = weights_at + sizes[l] * stride;
    layers_.push_back({sizes[l], sizes[l + 1], stride, weights_at, biases_at});
    parameter_count_ = biases_at + stride;
    outputs_.emplace_back(static_cast<std::size_t>(kPass) * stride);
    gradients_.emplace_back(l + 2 < sizes.size() ? static_cast<std::size_t>(kPass) * stride : 0);
    transposed_.emplace_back(l > 0 ? static_cast<std::size_t>(sizes[l + 1]) * PadToLanes(sizes[l])
                                   : 0);
    widest = std::max(widest, stride);
  }
  zeros_.assign(widest, 0.0f);
}

AlignedFloats MiniatureNetwork::RandomParameters(Rng& rng, double scale) const {
  AlignedFloats parameters(parameter_count_, 0.0f);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const bool rectified = l + 1 < layers_.size() && shape_.activation == Activation::kRelu;
    const double deviation = scale * std::sqrt((rectified ? 2.0 : 1.0) / layer.inputs);
    for (int i = 0; i < layer.inputs; ++i) {
      for (int o = 0; o < layer.outputs; ++o) {
        parameters[layer.weights_at + i * layer.stride + o] =
            static_cast<float>(deviation * rng.Normal());
      }
    }
  }
  return parameters;
}

void MiniatureNetwork::SetParameters(const AlignedFloats& parameters) {
  DYNAMIX_CHECK(static_cast<int>(parameters.size()) == parameter_count_,
                "parameters of this shape");
  parameters_ = parameters.data();
  for (std::size_t l = 1; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    const int stride = layers_[l - 1].stride;
    const float* weights = parameters_ + layer.weights_at;
    float* out = transposed_[l].data();
    for (int i = 0; i < layer.inputs; ++i) {
      for (int o = 0; o < layer.outputs; ++o) out[o * stride + i] = weights[i * layer.stride + o];
    }
  }
}

const float* MiniatureNetwork::Forward(int count, const float* inputs) {
  DYNAMIX_CHECK(parameters_ != nullptr && count <= kPass, "parameters set, one pass of samples");
  const float* values = inputs;
  int stride = input_stride_;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    float* out = outputs_[l].data();
    Multiply(count, layer.stride, layer.inputs, {values, stride, 1}, parameters_ + layer.weights_at,
             layer.stride, parameters_ + layer.biases_at, 0, out, layer.stride);
    if (l + 1 < layers_.size()) Activate(shape_.activation, count * layer.stride, out);
    values = out;
    stride = layer.stride;
  }
  return values;
}

LossSum MiniatureNetwork::Evaluate(int count, const float* inputs, const std::uint8_t* labels) {
  Forward(count, inputs);
  return SoftmaxCrossEntropy(count, shape_.classes, labels, outputs_.back().data());
}

LossSum MiniatureNetwork::AddGradient(int count, const float* inputs, const std::uint8_t* labels,
                                      float* gradient) {
  const LossSum sum = Evaluate(count, inputs, labels);
  const float* delta = outputs_.back().data();
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const float* values = l > 0 ? outputs_[l - 1].data() : inputs;
    const int stride = l > 0 ? layers_[l - 1].stride : input_stride_;
    float* weights = gradient + layer.weights_at;
    Multiply(layer.inputs, layer.stride, count, {values, 1, stride}, delta, layer.stride, weights,
             layer.stride, weights, layer.stride);
    AddColumnSums(count, layer.stride, delta, gradient + layer.biases_at);
    if (l == 0) break;
    float* below = gradients_[l - 1].data();
    Multiply(count, stride, layer.outputs, {delta, layer.stride, 1}, transposed_[l].data(), stride,
             zeros_.data(), 0, below, stride);
    ActivateBackward(shape_.activation, count * stride, values, below);
    delta = below;
  }
  return sum;
}

}  // namespace dynamix
