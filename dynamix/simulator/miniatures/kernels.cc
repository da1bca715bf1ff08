// Register blocking: a tile of up to 8 rows x 3 vectors of 16 floats stays in registers over the
// whole depth; each step loads the tile's vectors of `right` once and broadcasts one float of
// `left` per row. AVX-512 has 32 vector registers for that; with fewer, tiles shrink to 4 rows x 1
// vector, which changes no sum's order.
//
// exp: 2^n * p(r) with n = round(x / ln 2) and a degree-6 polynomial in r (Cephes expf, relative
// error 2e-7).
#include "dynamix/simulator/miniatures/kernels.h"

#include <algorithm>
#include <cmath>

#include "dynamix/core/simd.h"

#define DYNAMIX_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define DYNAMIX_UNROLL _Pragma("unroll")
#else
#define DYNAMIX_UNROLL _Pragma("GCC unroll 16")
#endif

namespace dynamix {
namespace {

using Lanes = float __attribute__((vector_size(4 * kLanes), may_alias));
using Bits = std::uint32_t __attribute__((vector_size(4 * kLanes), may_alias));

using Halves = std::uint16_t __attribute__((vector_size(2 * kLanes), may_alias));

constexpr int kTileRows = 8;
constexpr int kTileVectors = 3;

DYNAMIX_INLINE const Lanes& Load(const float* from) {
  return *reinterpret_cast<const Lanes*>(from);
}
DYNAMIX_INLINE Lanes& At(float* to) { return *reinterpret_cast<Lanes*>(to); }

struct Product {
  int depth;
  StridedMatrix left;
  const float* right;
  std::ptrdiff_t right_stride;
  const float* start;
  std::ptrdiff_t start_stride;
  float* result;
  std::ptrdiff_t result_stride;
};

template <int kRows, int kVectors>
DYNAMIX_INLINE void Tile(const Product& p, int row, int column) {
  Lanes sums[kRows][kVectors];
  DYNAMIX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    DYNAMIX_UNROLL
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = Load(p.start + (row + r) * p.start_stride + column + v * kLanes);
  }
  const float* left = p.left.data + row * p.left.row_stride;
  const float* right = p.right + column;
  for (int k = 0; k < p.depth; ++k, left += p.left.column_stride, right += p.right_stride) {
    Lanes factors[kVectors];
    DYNAMIX_UNROLL
    for (int v = 0; v < kVectors; ++v) factors[v] = Load(right + v * kLanes);
    DYNAMIX_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float scalar = left[r * p.left.row_stride];
      DYNAMIX_UNROLL
      for (int v = 0; v < kVectors; ++v) sums[r][v] += scalar * factors[v];
    }
  }
  DYNAMIX_UNROLL
  for (int r = 0; r < kRows; ++r) {
    DYNAMIX_UNROLL
    for (int v = 0; v < kVectors; ++v)
      At(p.result + (row + r) * p.result_stride + column + v * kLanes) = sums[r][v];
  }
}

template <int kVectors>
DYNAMIX_INLINE void TileRows(const Product& p, int rows, int row, int column) {
  switch (rows) {
    case 8:
      return Tile<8, kVectors>(p, row, column);
    case 7:
      return Tile<7, kVectors>(p, row, column);
    case 6:
      return Tile<6, kVectors>(p, row, column);
    case 5:
      return Tile<5, kVectors>(p, row, column);
    case 4:
      return Tile<4, kVectors>(p, row, column);
    case 3:
      return Tile<3, kVectors>(p, row, column);
    case 2:
      return Tile<2, kVectors>(p, row, column);
    default:
      return Tile<1, kVectors>(p, row, column);
  }
}

// Splits evenly: 49 rows are 7 x 7, not 6 x 8 + 1.
int EvenStep(int size, int limit) {
  const int parts = (size + limit - 1) / limit;
  return (size + parts - 1) / parts;
}

bool HasWideRegisters() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f");
#else
  return true;
#endif
}

DYNAMIX_SIMD void MultiplyTiles(const Product& p, int rows, int columns, int row_step,
                                int vector_step) {
  const int vectors = columns / kLanes;
  for (int v = 0; v < vectors; v += vector_step) {
    const int width = std::min(vector_step, vectors - v);
    for (int row = 0; row < rows; row += row_step) {
      const int height = std::min(row_step, rows - row);
      switch (width) {
        case 3:
          TileRows<3>(p, height, row, v * kLanes);
          break;
        case 2:
          TileRows<2>(p, height, row, v * kLanes);
          break;
        default:
          TileRows<1>(p, height, row, v * kLanes);
          break;
      }
    }
  }
}

// Every lane of the result holds the largest (the sum) of all lanes.
DYNAMIX_INLINE void SpreadMax(Lanes& x) {
  Lanes other = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  x = x > other ? x : other;
  other = __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  x = x > other ? x : other;
  other = __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  x = x > other ? x : other;
  other = __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
  x = x > other ? x : other;
}
DYNAMIX_INLINE void SpreadSum(Lanes& x) {
  x += __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
  x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
  x += __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
  x += __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
}

// x := exp(x) for x in [-87, 87]; outside it is clamped.
DYNAMIX_INLINE void Exponentiate(Lanes& x) {
  // 1.5 * 2^23: adding it leaves round(x) in the low mantissa bits.
  constexpr float kRound = 12582912.0f;
  const Lanes limit = Lanes{} + 87.0f;
  x = x > limit ? limit : x;
  x = x < -limit ? -limit : x;
  const Lanes shifted = x * 1.44269504088896341f + kRound;
  const Lanes n = shifted - kRound;
  const Lanes r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  x = reinterpret_cast<Lanes>(reinterpret_cast<Bits>(p) + (reinterpret_cast<Bits>(shifted) << 23));
}

double SumOfLanes(const Lanes& lanes) {
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += static_cast<double>(lanes[i]);
  return sum;
}

}  // namespace

void Multiply(int rows, int columns, int depth, StridedMatrix left, const float* right,
              std::ptrdiff_t right_stride, const float* start, std::ptrdiff_t start_stride,
              float* result, std::ptrdiff_t result_stride) {
  if (rows <= 0) return;
  const Product product{depth, left,         right,  right_stride,
                        start, start_stride, result, result_stride};
  const bool wide = HasWideRegisters();
  MultiplyTiles(product, rows, columns, EvenStep(rows, wide ? kTileRows : kTileRows / 2),
                wide ? EvenStep(columns / kLanes, kTileVectors) : 1);
}

DYNAMIX_SIMD void AddColumnSums(int rows, int columns, const float* matrix, float* sums) {
  for (int c = 0; c < columns; c += kLanes) {
    Lanes even = Load(sums + c), odd = {};
    int r = 0;
    for (; r + 1 < rows; r += 2) {
      even += Load(matrix + r * columns + c);
      odd += Load(matrix + (r + 1) * columns + c);
    }
    if (r < rows) even += Load(matrix + r * columns + c);
    At(sums + c) = even + odd;
  }
}

DYNAMIX_SIMD void Activate(Activation activation, int size, float* values) {
  const Lanes zero = {};
  if (activation == Activation::kRelu) {
    for (int i = 0; i < size; i += kLanes) {
      const Lanes x = Load(values + i);
      At(values + i) = x < zero ? zero : x;  // keeps NaN, so that divergence is seen
    }
    return;
  }
  for (int i = 0; i < size; i += kLanes) {  // tanh(x) = 1 - 2 / (exp(2x) + 1)
    const Lanes x = Load(values + i);
    Lanes power = 2.0f * x;
    Exponentiate(power);
    const Lanes y = 1.0f - 2.0f / (power + 1.0f);
    At(values + i) = x == x ? y : x;
  }
}

DYNAMIX_SIMD void ActivateBackward(Activation activation, int size, const float* outputs,
                                   float* gradient) {
  const Lanes zero = {};
  if (activation == Activation::kRelu) {
    for (int i = 0; i < size; i += kLanes) {
      At(gradient + i) = Load(outputs + i) > zero ? Load(gradient + i) : zero;
    }
    return;
  }
  for (int i = 0; i < size; i += kLanes) {
    const Lanes y = Load(outputs + i);
    At(gradient + i) *= 1.0f - y * y;
  }
}

DYNAMIX_SIMD LossSum SoftmaxCrossEntropy(int rows, int classes, const std::uint8_t* labels,
                                         float* logits) {
  Lanes padding = {}, one = {};
  for (int c = classes; c < kLanes; ++c) padding[c] = -1e30f;
  for (int c = 0; c < classes; ++c) one[c] = 1.0f;
  LossSum sum;
  double margins = 0;
  double product = 1;  // of the partition sums, each in [1, 16]: one log per 64 samples
  for (int r = 0; r < rows; ++r) {
    float* row = logits + r * kLanes;
    const Lanes x = Load(row) + padding;
    Lanes top = x;
    SpreadMax(top);
    const float own = row[labels[r]];
    sum.correct += own >= top[0] ? 1 : 0;
    margins += static_cast<double>(top[0] - own);
    Lanes power = x - top;
    Exponentiate(power);
    power *= one;
    Lanes total = power;
    SpreadSum(total);
    product *= static_cast<double>(total[0]);
    if (r % 64 == 63) {
      sum.loss += std::log(product);
      product = 1;
    }
    At(row) = power / total;
    row[labels[r]] -= 1.0f;
  }
  sum.loss += std::log(product) + margins;
  return sum;
}

DYNAMIX_SIMD void GatherScaled(int count, int columns, const std::uint32_t* rows,
                               const std::uint16_t* source, std::ptrdiff_t source_stride,
                               const float* scale, float* out) {
  for (int r = 0; r < count; ++r, out += columns) {
    const std::uint16_t* row = source + rows[r] * source_stride;
    for (int c = 0; c < columns; c += kLanes) {
      const Halves halves = *reinterpret_cast<const Halves*>(row + c);
      const Bits bits = __builtin_convertvector(halves, Bits) << 16;
      At(out + c) = reinterpret_cast<Lanes>(bits) * Load(scale + c);
    }
  }
}

// Both with four running sums, because one would wait for its own latency.
DYNAMIX_SIMD double SquaredNorm(int size, const float* values) {
  Lanes sums[4] = {};
  int i = 0;
  for (; i + 4 * kLanes <= size; i += 4 * kLanes) {
    DYNAMIX_UNROLL
    for (int k = 0; k < 4; ++k) {
      const Lanes x = Load(values + i + k * kLanes);
      sums[k] += x * x;
    }
  }
  for (; i < size; i += kLanes) sums[0] += Load(values + i) * Load(values + i);
  return SumOfLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

DYNAMIX_SIMD double SquaredNormAndAdd(int size, const float* part, float* total) {
  Lanes sums[4] = {};
  int i = 0;
  for (; i + 4 * kLanes <= size; i += 4 * kLanes) {
    DYNAMIX_UNROLL
    for (int k = 0; k < 4; ++k) {
      const Lanes x = Load(part + i + k * kLanes);
      sums[k] += x * x;
      At(total + i + k * kLanes) += x;
    }
  }
  for (; i < size; i += kLanes) {
    const Lanes x = Load(part + i);
    sums[0] += x * x;
    At(total + i) += x;
  }
  return SumOfLanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

DYNAMIX_SIMD void SgdStep(int size, const float* gradient, float gradient_scale,
                          float learning_rate, float momentum, float* velocity, float* weights) {
  for (int i = 0; i < size; i += kLanes) {
    const Lanes v = momentum * Load(velocity + i) + gradient_scale * Load(gradient + i);
    At(velocity + i) = v;
    At(weights + i) -= learning_rate * v;
  }
}

AdamFactors MakeAdamFactors(double learning_rate, double beta1, double weight_decay, double step) {
  constexpr double kBeta2 = 0.999, kEpsilon = 1e-8;
  return {.beta1 = static_cast<float>(beta1),
          .beta2 = static_cast<float>(kBeta2),
          .rate = static_cast<float>(learning_rate / (1 - std::pow(beta1, step))),
          .keep = static_cast<float>(1 - learning_rate * weight_decay),
          .second_factor = static_cast<float>(1 / std::sqrt(1 - std::pow(kBeta2, step))),
          .epsilon = static_cast<float>(kEpsilon)};
}

DYNAMIX_SIMD void AdamStep(int size, const float* __restrict__ gradient, float gradient_scale,
                           const AdamFactors& factors, float* __restrict__ first,
                           float* __restrict__ second, float* __restrict__ weights) {
  // A plain loop, because vector types have no square root; vectorised under -fno-math-errno
  // (simulator/CMakeLists.txt).
  for (int i = 0; i < size; ++i) {
    const float g = gradient_scale * gradient[i];
    const float m = factors.beta1 * first[i] + (1.0f - factors.beta1) * g;
    const float v = factors.beta2 * second[i] + (1.0f - factors.beta2) * g * g;
    first[i] = m;
    second[i] = v;
    weights[i] = factors.keep * weights[i] -
                 factors.rate * m / (std::sqrt(v) * factors.second_factor + factors.epsilon);
  }
}

}  // namespace dynamix
