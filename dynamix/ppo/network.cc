#include "dynamix/ppo/network.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/ppo/kernels.h"

namespace dynamix {
namespace {

Tower MakeTower(int inputs, const std::vector<int>& hidden, int outputs, std::size_t& offset) {
  Tower tower;
  int in = inputs;
  auto add = [&](int out, bool tanh) {
    Layer layer{.in = in, .out = out, .tanh = tanh, .weights = offset, .bias = 0};
    layer.bias = layer.weights + static_cast<std::size_t>(in) * out;
    offset = layer.bias + out;
    tower.push_back(layer);
    in = out;
  };
  for (const int width : hidden) add(width, true);
  add(outputs, false);
  return tower;
}

// rows x columns numbers with orthonormal rows (or columns, whichever are fewer): Gram-Schmidt,
// twice for accuracy, on Gaussian vectors.
std::vector<double> Orthogonal(int rows, int columns, Rng& rng) {
  const int count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> basis(static_cast<std::size_t>(count) * length);
  for (double& x : basis) x = rng.Normal();
  for (int k = 0; k < count; ++k) {
    double* v = basis.data() + static_cast<std::ptrdiff_t>(k) * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (int j = 0; j < k; ++j) {
        const double* u = basis.data() + static_cast<std::ptrdiff_t>(j) * length;
        const double along = std::inner_product(v, v + length, u, 0.0);
        for (int i = 0; i < length; ++i) v[i] -= along * u[i];
      }
    }
    const double norm = std::sqrt(std::inner_product(v, v + length, v, 0.0));
    for (int i = 0; i < length; ++i) v[i] /= norm;
  }
  if (rows <= columns) return basis;
  std::vector<double> transposed(basis.size());
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      transposed[static_cast<std::size_t>(r) * columns + c] =
          basis[static_cast<std::size_t>(c) * length + r];
  return transposed;
}

template <typename T>
void InitializeTower(const Tower& tower, double output_gain, std::span<T> parameters, Rng& rng) {
  for (const Layer& layer : tower) {
    const double gain = layer.tanh ? std::numbers::sqrt2 : output_gain;
    const std::vector<double> weights = Orthogonal(layer.out, layer.in, rng);
    for (std::size_t i = 0; i < weights.size(); ++i)
      parameters[layer.weights + i] = static_cast<T>(gain * weights[i]);
    for (int o = 0; o < layer.out; ++o) parameters[layer.bias + o] = 0;
  }
}

void RequireWidths(const char* field, const std::vector<int>& widths, std::size_t most, int high) {
  RequireInRange<std::size_t>(field, widths.size(), 1, most);
  for (const int width : widths) RequireInRange(field, width, 1, high);
}

}  // namespace

int NetworkShape::logit_count() const { return std::accumulate(heads.begin(), heads.end(), 0); }

std::size_t NetworkShape::parameter_count() const {
  std::size_t count = 0;
  MakeTower(actor_inputs, hidden, logit_count(), count);
  MakeTower(critic_width(), hidden, 1, count);
  return count;
}

void NetworkShape::Validate() const {
  RequireInRange("actor_inputs", actor_inputs, 1, 4096);
  RequireInRange("critic_inputs", critic_inputs, 0, 4096);
  RequireWidths("hidden", hidden, 8, 4096);
  RequireWidths("heads", heads, 16, 1024);
}

template <typename T>
Network<T>::Network(const NetworkShape& shape) : shape_(shape) {
  shape.Validate();
  std::size_t count = 0;
  policy_ = MakeTower(shape.actor_inputs, shape.hidden, shape.logit_count(), count);
  value_ = MakeTower(shape.critic_width(), shape.hidden, 1, count);
  parameters_.resize(count);
}

template <typename T>
void Network<T>::Initialize(Rng& rng) {
  InitializeTower<T>(policy_, 0.01, parameters_, rng);
  InitializeTower<T>(value_, 1.0, parameters_, rng);
}

template <typename T>
TowerPass<T>::TowerPass(const Tower& tower, int blocks) : tower_(tower), blocks_(blocks) {
  const std::size_t rows = static_cast<std::size_t>(blocks) * kBlockRows;
  activations_.emplace_back(rows * tower.front().in);
  for (const Layer& layer : tower) {
    activations_.emplace_back(rows * layer.out);
    gradients_.emplace_back(rows * layer.out);
  }
}

template <typename T>
T* TowerPass<T>::Forward(std::span<const T> parameters, int used) {
  DYNAMIX_CHECK(used <= blocks_, "a pass is not larger than its buffers");
  for (std::size_t l = 0; l < tower_.size(); ++l) {
    const Layer& layer = tower_[l];
    T* y = activations_[l + 1].data();
    DenseForward({layer.in, layer.out}, &parameters[layer.weights], &parameters[layer.bias],
                 activations_[l].data(), used, y);
    if (layer.tanh) Tanh(y, static_cast<std::size_t>(used) * kBlockRows * layer.out);
  }
  return activations_.back().data();
}

template <typename T>
void TowerPass<T>::Backward(std::span<const T> parameters, int used, std::span<T> gradient) {
  for (std::size_t l = tower_.size(); l-- > 0;) {
    const Layer& layer = tower_[l];
    T* dy = gradients_[l].data();
    if (layer.tanh)
      TanhBackward(activations_[l + 1].data(), dy,
                   static_cast<std::size_t>(used) * kBlockRows * layer.out);
    const DenseShape shape{layer.in, layer.out};
    DenseBackwardWeights(shape, activations_[l].data(), dy, used, &gradient[layer.weights],
                         &gradient[layer.bias]);
    if (l > 0)
      DenseBackwardInput(shape, &parameters[layer.weights], dy, used, gradients_[l - 1].data());
  }
}

template <typename T>
void GatherRows(std::span<const T> matrix, int width, std::span<const int> rows, T* blocks) {
  const int count = static_cast<int>(rows.size());
  for (int block = 0; block < BlocksFor(count); ++block) {
    T* out = blocks + static_cast<std::ptrdiff_t>(block) * width * kBlockRows;
    for (int r = 0; r < kBlockRows; ++r) {
      const int index = block * kBlockRows + r;
      if (index < count) {
        const T* in = matrix.data() + static_cast<std::ptrdiff_t>(rows[index]) * width;
        for (int f = 0; f < width; ++f) out[f * kBlockRows + r] = in[f];
      } else {
        for (int f = 0; f < width; ++f) out[f * kBlockRows + r] = 0;
      }
    }
  }
}

std::string TensorName(const char* tower, std::size_t layer, const char* part) {
  return std::string(tower) + "." + std::to_string(layer) + "." + part;
}

template class Network<float>;
template class Network<double>;
template class TowerPass<float>;
template class TowerPass<double>;
template void GatherRows<float>(std::span<const float>, int, std::span<const int>, float*);
template void GatherRows<double>(std::span<const double>, int, std::span<const int>, double*);

}  // namespace dynamix
