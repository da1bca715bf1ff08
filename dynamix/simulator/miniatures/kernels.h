// Vectorised float32 kernels of the miniatures: small matrix products, activations, softmax,
// optimizer steps.
//
// Every matrix is row-major. The dimension that inner loops run along is padded to a multiple of
// kLanes and 64-byte aligned (AlignedFloats); padding holds zeros and every kernel keeps it so.
// Each function is compiled once per x86-64 level (core/simd.h). Pure functions, no allocation,
// safe from any thread on disjoint outputs; they do not fail: non-finite inputs give non-finite
// outputs. Same inputs on the same machine, same bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "dynamix/job/miniature_options.h"

namespace dynamix {

inline constexpr int kLanes = 16;
inline constexpr int PadToLanes(int size) { return (size + kLanes - 1) / kLanes * kLanes; }

template <typename T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: allocators convert implicitly
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, kAlignment); }
  bool operator==(const AlignedAllocator&) const { return true; }
};
using AlignedFloats = std::vector<float, AlignedAllocator<float>>;
using AlignedHalves = std::vector<std::uint16_t, AlignedAllocator<std::uint16_t>>;

// A factor read in any order: element (row, column) is data[row * row_stride + column *
// column_stride].
struct StridedMatrix {
  const float* data;
  std::ptrdiff_t row_stride;
  std::ptrdiff_t column_stride;
};

// result[rows x columns] = start + left[rows x depth] * right[depth x columns]; columns a multiple
// of kLanes. `start` has row stride `start_stride`: 0 repeats one row (a bias), the stride of
// result with start == result accumulates.
void Multiply(int rows, int columns, int depth, StridedMatrix left, const float* right,
              std::ptrdiff_t right_stride, const float* start, std::ptrdiff_t start_stride,
              float* result, std::ptrdiff_t result_stride);

// sums[c] += sum over rows of matrix[r][c]; columns a multiple of kLanes and the row stride.
void AddColumnSums(int rows, int columns, const float* matrix, float* sums);

// x := f(x), and gradient := gradient * f'(x) expressed by the output f(x). `size` a multiple of
// kLanes.
void Activate(Activation activation, int size, float* values);
void ActivateBackward(Activation activation, int size, const float* outputs, float* gradient);

struct LossSum {
  double loss = 0;  // summed over samples, natural log
  int correct = 0;  // samples whose label has the largest logit
};
// Softmax cross-entropy of `rows` samples, classes <= kLanes, row stride kLanes. Replaces each row
// of logits by the gradient of that sample's loss: probability - [class is the label], 0 in the
// padding.
LossSum SoftmaxCrossEntropy(int rows, int classes, const std::uint8_t* labels, float* logits);

// bfloat16, the upper half of a float: features are stored so, because a pool larger than the
// caches is read in random order and its size is what that costs. Rounds to nearest even; `value`
// is finite.
inline std::uint16_t ToBfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
inline float FromBfloat16(std::uint16_t value) {
  return std::bit_cast<float>(std::uint32_t{value} << 16);
}

// out[r] = source[rows[r]] * scale, for `count` rows of `columns` (a multiple of kLanes) bfloat16.
void GatherScaled(int count, int columns, const std::uint32_t* rows, const std::uint16_t* source,
                  std::ptrdiff_t source_stride, const float* scale, float* out);

// Sum of squares; the second adds `part` to `total` on the way.
double SquaredNorm(int size, const float* values);
double SquaredNormAndAdd(int size, const float* part, float* total);

// Optimizer steps on gradient * gradient_scale, as torch::optim::SGD (dampening 0) and
// torch::optim::AdamW (Adam when nothing decays).
void SgdStep(int size, const float* gradient, float gradient_scale, float learning_rate,
             float momentum, float* velocity, float* weights);
struct AdamFactors {
  float beta1, beta2;
  float rate;           // learning rate over 1 - beta1^t
  float keep;           // what decay leaves of a weight, 1 - learning rate x weight decay
  float second_factor;  // 1 over sqrt(1 - beta2^t)
  float epsilon;
};
// Of step 1, 2, ... with beta2 0.999 and epsilon 1e-8.
AdamFactors MakeAdamFactors(double learning_rate, double beta1, double weight_decay, double step);
void AdamStep(int size, const float* gradient, float gradient_scale, const AdamFactors& factors,
              float* first, float* second, float* weights);

}  // namespace dynamix
