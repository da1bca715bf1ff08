// Register-blocked kernels on 64-byte vectors (GCC vector extensions), compiled per x86-64 level.
//
// Forward and input-backward are one kernel: a 4 outputs x 4 vectors tile of accumulators, a
// broadcast weight times a vector of rows. Weight-backward keeps a tile of 4 x 4 accumulators over
// all rows and sums their lanes once. With 16-register machines (AVX2) the tiles are smaller, so
// that nothing spills. tanh: the rational minimax of degree 13/6 used by Eigen
// (MathFunctionsImpl.h), error below 3 ulp. exp: Cephes expf (range reduction by log 2 in two
// parts, polynomial of degree 5), error below 2 ulp.
#include "dynamix/ppo/kernels.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "dynamix/core/simd.h"

#define DYNAMIX_INLINE inline __attribute__((always_inline))

namespace dynamix {
namespace {

template <typename T>
struct Lanes {
  static constexpr int kCount = 64 / sizeof(T);
  // Unaligned: buffers are std::vector.
  typedef T Vector __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
};

// Thirty-two vector registers: big tiles. Only where DYNAMIX_SIMD compiles for them.
bool HasManyRegisters() {
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  static const bool many = __builtin_cpu_supports("avx512f") != 0;
  return many;
#else
  return false;
#endif
}

// y[o] = bias[o] + sum_i w[o * out_stride + i * in_stride] x[i] for kOut outputs and kVectors
// vectors of rows.
template <typename T, int kOut, int kVectors>
DYNAMIX_INLINE void Tile(const T* w, std::ptrdiff_t out_stride, std::ptrdiff_t in_stride,
                         const T* bias, const T* x, int in, T* y) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int kLanes = Lanes<T>::kCount;
  Vector sum[kOut][kVectors];
  for (int o = 0; o < kOut; ++o)
    for (int v = 0; v < kVectors; ++v) sum[o][v] = Vector{} + (bias ? bias[o] : T(0));
  for (int i = 0; i < in; ++i) {
    const Vector* row = reinterpret_cast<const Vector*>(x + i * kBlockRows);
    for (int o = 0; o < kOut; ++o) {
      const T weight = w[o * out_stride + i * in_stride];
      for (int v = 0; v < kVectors; ++v) sum[o][v] += weight * row[v];
    }
  }
  for (int o = 0; o < kOut; ++o)
    for (int v = 0; v < kVectors; ++v)
      *reinterpret_cast<Vector*>(y + o * kBlockRows + v * kLanes) = sum[o][v];
}

template <typename T, int kVectors>
DYNAMIX_INLINE void Multiply(const T* w, std::ptrdiff_t out_stride, std::ptrdiff_t in_stride,
                             const T* bias, const T* x, int in, int out, int blocks, T* y) {
  constexpr int kRows = kVectors * Lanes<T>::kCount;
  for (int block = 0; block < blocks; ++block) {
    const T* xb = x + static_cast<std::ptrdiff_t>(block) * in * kBlockRows;
    T* yb = y + static_cast<std::ptrdiff_t>(block) * out * kBlockRows;
    for (int row = 0; row < kBlockRows; row += kRows) {
      int o = 0;
      for (; o + 4 <= out; o += 4)
        Tile<T, 4, kVectors>(w + o * out_stride, out_stride, in_stride, bias ? bias + o : nullptr,
                             xb + row, in, yb + o * kBlockRows + row);
      for (; o < out; ++o)
        Tile<T, 1, kVectors>(w + o * out_stride, out_stride, in_stride, bias ? bias + o : nullptr,
                             xb + row, in, yb + o * kBlockRows + row);
    }
  }
}

// Sixteen vectors of sixteen lanes to the vector of their sixteen lane sums, in v[0]: four rounds
// of adding neighbouring lanes of two vectors into one.
template <typename T>
DYNAMIX_INLINE void FoldSixteen(typename Lanes<T>::Vector* v) {
  for (int count = 8; count > 0; count /= 2)
    for (int k = 0; k < count; ++k)
      v[k] = __builtin_shufflevector(v[2 * k], v[2 * k + 1], 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20,
                                     22, 24, 26, 28, 30) +
             __builtin_shufflevector(v[2 * k], v[2 * k + 1], 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21,
                                     23, 25, 27, 29, 31);
}

// Adds the lane sums of kOut x kIn products dy[o] . x[i] over all rows of all blocks to dw.
template <typename T, int kOut, int kIn>
DYNAMIX_INLINE void GradientTile(const T* x, std::ptrdiff_t x_block, const T* dy,
                                 std::ptrdiff_t dy_block, int blocks, T* dw, int dw_stride) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int kLanes = Lanes<T>::kCount;
  Vector sum[kOut][kIn] = {};
  for (int block = 0; block < blocks; ++block) {
    const T* xb = x + block * x_block;
    const T* db = dy + block * dy_block;
    for (int row = 0; row < kBlockRows; row += kLanes) {
      for (int o = 0; o < kOut; ++o) {
        const Vector d = *reinterpret_cast<const Vector*>(db + o * kBlockRows + row);
        for (int i = 0; i < kIn; ++i)
          sum[o][i] += d * *reinterpret_cast<const Vector*>(xb + i * kBlockRows + row);
      }
    }
  }
  if constexpr (kOut * kIn == 16 && kLanes == 16) {
    FoldSixteen<T>(&sum[0][0]);
    for (int o = 0; o < kOut; ++o)
      for (int i = 0; i < kIn; ++i) dw[o * dw_stride + i] += sum[0][0][o * kIn + i];
  } else {
    for (int o = 0; o < kOut; ++o)
      for (int i = 0; i < kIn; ++i) {
        T total = 0;
        for (int l = 0; l < kLanes; ++l) total += sum[o][i][l];
        dw[o * dw_stride + i] += total;
      }
  }
}

template <typename T, int kOut, int kIn>
DYNAMIX_INLINE void GradientRows(DenseShape shape, const T* x, const T* dy, int blocks, T* dw) {
  const std::ptrdiff_t x_block = static_cast<std::ptrdiff_t>(shape.in) * kBlockRows;
  const std::ptrdiff_t dy_block = static_cast<std::ptrdiff_t>(shape.out) * kBlockRows;
  int i = 0;
  for (; i + kIn <= shape.in; i += kIn)
    GradientTile<T, kOut, kIn>(x + i * kBlockRows, x_block, dy, dy_block, blocks, dw + i, shape.in);
  for (; i < shape.in; ++i)
    GradientTile<T, kOut, 1>(x + i * kBlockRows, x_block, dy, dy_block, blocks, dw + i, shape.in);
}

template <typename T, int kTile>
DYNAMIX_INLINE void Gradients(DenseShape shape, const T* x, const T* dy, int blocks, T* dw, T* db) {
  int o = 0;
  for (; o + kTile <= shape.out; o += kTile)
    GradientRows<T, kTile, kTile>(shape, x, dy + o * kBlockRows, blocks, dw + o * shape.in);
  for (; o < shape.out; ++o)
    GradientRows<T, 1, kTile>(shape, x, dy + o * kBlockRows, blocks, dw + o * shape.in);
  for (int block = 0; block < blocks; ++block) {
    for (o = 0; o < shape.out; ++o) {
      const T* row = dy + (static_cast<std::ptrdiff_t>(block) * shape.out + o) * kBlockRows;
      T lanes[16] = {};
      for (int r = 0; r < kBlockRows; r += 16)
        for (int l = 0; l < 16; ++l) lanes[l] += row[r + l];
      T sum = 0;
      for (int l = 0; l < 16; ++l) sum += lanes[l];
      db[o] += sum;
    }
  }
}

DYNAMIX_INLINE float TanhOf(float value) {
  // Beyond this tanh rounds to 1. Written so that a NaN stays a NaN.
  float x = value > 7.90531110763549805f ? 7.90531110763549805f : value;
  x = x < -7.90531110763549805f ? -7.90531110763549805f : x;
  const float s = x * x;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s + -8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return x * p / q;
}

DYNAMIX_INLINE float ExpOf(float value) {
  float x = value > 88.0f ? 88.0f : value;
  x = x < -87.0f ? -87.0f : x;
  // Adding 1.5 * 2^23 rounds to the nearest integer, which then sits in the low mantissa bits.
  const float shifted = x * 1.44269504088896341f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  const float result = std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
  return value < -87.0f ? 0.0f : result;
}

DYNAMIX_INLINE double ExpOf(double value) { return std::exp(value); }

template <typename T>
DYNAMIX_INLINE void LogSoftmaxOf(T* z, int actions) {
  T high[kBlockRows], sum[kBlockRows];
  for (int r = 0; r < kBlockRows; ++r) high[r] = z[r];
  for (int a = 1; a < actions; ++a)
    for (int r = 0; r < kBlockRows; ++r) {
      const T value = z[a * kBlockRows + r];
      high[r] = value > high[r] ? value : high[r];
    }
  for (int r = 0; r < kBlockRows; ++r) sum[r] = 0;
  for (int a = 0; a < actions; ++a)
    for (int r = 0; r < kBlockRows; ++r) {
      z[a * kBlockRows + r] -= high[r];
      sum[r] += ExpOf(z[a * kBlockRows + r]);
    }
  for (int r = 0; r < kBlockRows; ++r) sum[r] = std::log(sum[r]);
  for (int a = 0; a < actions; ++a)
    for (int r = 0; r < kBlockRows; ++r) z[a * kBlockRows + r] -= sum[r];
}

}  // namespace

DYNAMIX_SIMD void DenseForward(DenseShape shape, const float* weights, const float* bias,
                               const float* x, int blocks, float* y) {
  if (HasManyRegisters()) {
    Multiply<float, 4>(weights, shape.in, 1, bias, x, shape.in, shape.out, blocks, y);
  } else {
    Multiply<float, 1>(weights, shape.in, 1, bias, x, shape.in, shape.out, blocks, y);
  }
}
DYNAMIX_SIMD void DenseForward(DenseShape shape, const double* weights, const double* bias,
                               const double* x, int blocks, double* y) {
  Multiply<double, 1>(weights, shape.in, 1, bias, x, shape.in, shape.out, blocks, y);
}

DYNAMIX_SIMD void DenseBackwardInput(DenseShape shape, const float* weights, const float* dy,
                                     int blocks, float* dx) {
  const float* none = nullptr;
  if (HasManyRegisters()) {
    Multiply<float, 4>(weights, 1, shape.in, none, dy, shape.out, shape.in, blocks, dx);
  } else {
    Multiply<float, 1>(weights, 1, shape.in, none, dy, shape.out, shape.in, blocks, dx);
  }
}
DYNAMIX_SIMD void DenseBackwardInput(DenseShape shape, const double* weights, const double* dy,
                                     int blocks, double* dx) {
  const double* none = nullptr;
  Multiply<double, 1>(weights, 1, shape.in, none, dy, shape.out, shape.in, blocks, dx);
}

DYNAMIX_SIMD void DenseBackwardWeights(DenseShape shape, const float* x, const float* dy,
                                       int blocks, float* dweights, float* dbias) {
  if (HasManyRegisters()) {
    Gradients<float, 4>(shape, x, dy, blocks, dweights, dbias);
  } else {
    Gradients<float, 2>(shape, x, dy, blocks, dweights, dbias);
  }
}
DYNAMIX_SIMD void DenseBackwardWeights(DenseShape shape, const double* x, const double* dy,
                                       int blocks, double* dweights, double* dbias) {
  Gradients<double, 2>(shape, x, dy, blocks, dweights, dbias);
}

DYNAMIX_SIMD void Tanh(float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = TanhOf(y[i]);
}
void Tanh(double* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = std::tanh(y[i]);
}

DYNAMIX_SIMD void TanhBackward(const float* y, float* dy, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dy[i] *= 1 - y[i] * y[i];
}
DYNAMIX_SIMD void TanhBackward(const double* y, double* dy, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dy[i] *= 1 - y[i] * y[i];
}

DYNAMIX_SIMD void LogSoftmax(float* z, int actions) { LogSoftmaxOf(z, actions); }
void LogSoftmax(double* z, int actions) { LogSoftmaxOf(z, actions); }

DYNAMIX_SIMD void Exp(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = ExpOf(x[i]);
}
void Exp(const double* x, double* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = std::exp(x[i]);
}

}  // namespace dynamix
