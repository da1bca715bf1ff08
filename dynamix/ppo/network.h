// Network: a policy tower and a value tower, tanh between dense layers, with hand-written
// derivatives.
//
// The policy tower ends in the logits of one or more discrete actions (`heads`), the value tower in
// one number. All parameters are one flat vector, so that the optimiser, the gradient norm and the
// policy file see plain numbers. A Network is a value: copying it copies the weights; concurrent
// reads are safe. A TowerPass holds the buffers of one forward and backward pass and belongs to one
// thread. Shapes are checked by NetworkShape::Validate (InputError); nothing else fails.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "dynamix/core/rng.h"

namespace dynamix {

struct NetworkShape {
  int actor_inputs = 0;   // width of a row of the policy tower, in [1, 4096]
  int critic_inputs = 0;  // width of a row of the value tower; 0: it sees the actor's row
  std::vector<int> hidden = {64, 64};  // tanh layers of each tower, at most 8, each in [1, 4096]
  std::vector<int> heads = {5};  // choices of each discrete action, at most 16, each in [1, 1024]

  int critic_width() const { return critic_inputs > 0 ? critic_inputs : actor_inputs; }
  int logit_count() const;
  std::size_t parameter_count() const;  // of both towers
  bool operator==(const NetworkShape&) const = default;
  // Throws InputError naming the field when a range is broken.
  void Validate() const;
};

// One dense layer of a tower: where its numbers are in the flat parameter vector.
struct Layer {
  int in = 0, out = 0;
  bool tanh = false;
  std::size_t weights = 0;  // offset of out x in numbers, row-major
  std::size_t bias = 0;     // offset of out numbers
};
using Tower = std::vector<Layer>;

template <typename T>
class Network {
 public:
  // All parameters zero.
  explicit Network(const NetworkShape& shape);

  // Orthogonal weights (Saxe et al. 2014): gain sqrt 2 for hidden layers, 0.01 for logits, 1 for
  // the value; zero bias (Huang et al. 2022, detail 2).
  void Initialize(Rng& rng);

  const NetworkShape& shape() const { return shape_; }
  const Tower& policy() const { return policy_; }
  const Tower& value() const { return value_; }
  std::span<T> parameters() { return parameters_; }
  std::span<const T> parameters() const { return parameters_; }

 private:
  NetworkShape shape_;
  Tower policy_, value_;
  std::vector<T> parameters_;
};

// Buffers and derivatives of one tower for up to `blocks` blocks of 64 rows (see kernels.h for the
// layout).
template <typename T>
class TowerPass {
 public:
  TowerPass(const Tower& tower, int blocks);

  int blocks() const { return blocks_; }
  // Where the inputs go; unused rows of the last block must be finite.
  T* input() { return activations_.front().data(); }
  // Outputs of `used` blocks.
  T* Forward(std::span<const T> parameters, int used);
  // Outputs of the last Forward.
  T* output() { return activations_.back().data(); }
  // Where the loss writes its derivative by the outputs; zero in unused rows. Its own memory.
  T* output_gradient() { return gradients_.back().data(); }
  // Adds the derivative by the parameters to `gradient`. Needs the activations of the last Forward.
  void Backward(std::span<const T> parameters, int used, std::span<T> gradient);

 private:
  Tower tower_;
  int blocks_;
  std::vector<std::vector<T>> activations_;  // input, then the output of each layer
  std::vector<std::vector<T>> gradients_;    // by the output of each layer
};

// Puts rows of a row-major matrix into blocks, and zeros into what is left of the last block.
template <typename T>
void GatherRows(std::span<const T> matrix, int width, std::span<const int> rows, T* blocks);

// Name of a parameter tensor in files: "policy.0.weight", "value.2.bias".
std::string TensorName(const char* tower, std::size_t layer, const char* part);

extern template class Network<float>;
extern template class Network<double>;
extern template class TowerPass<float>;
extern template class TowerPass<double>;

}  // namespace dynamix
