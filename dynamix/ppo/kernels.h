// The arithmetic of dense layers, by hand: forward, backward, tanh, exp. Used by network.cc and
// loss.cc only.
//
// Rows travel in blocks of 64, feature-major inside a block: element (row, feature) of block k is
// x[(k * features + feature) * 64 + row]. A row is one SIMD lane from input to log-probability, and
// a block is always computed whole, so the arithmetic of a row depends neither on its neighbours
// nor on how many there are. That is what makes the ratio of the first minibatch exactly 1, and a
// run repeatable bit for bit. Float is the working type (vectorised exp and tanh, about 2e-7
// relative); double is the reference for tests (standard library functions). Pure functions;
// nothing fails.
#pragma once

#include <cstddef>

namespace dynamix {

inline constexpr int kBlockRows = 64;
inline int BlocksFor(int rows) { return (rows + kBlockRows - 1) / kBlockRows; }

struct DenseShape {
  int in = 0;
  int out = 0;
};

// y = W x + b for `blocks` blocks; W is out x in, row-major.
void DenseForward(DenseShape shape, const float* weights, const float* bias, const float* x,
                  int blocks, float* y);
void DenseForward(DenseShape shape, const double* weights, const double* bias, const double* x,
                  int blocks, double* y);

// dx = W^T dy.
void DenseBackwardInput(DenseShape shape, const float* weights, const float* dy, int blocks,
                        float* dx);
void DenseBackwardInput(DenseShape shape, const double* weights, const double* dy, int blocks,
                        double* dx);

// dW += dy x^T, db += sum over rows of dy.
void DenseBackwardWeights(DenseShape shape, const float* x, const float* dy, int blocks,
                          float* dweights, float* dbias);
void DenseBackwardWeights(DenseShape shape, const double* x, const double* dy, int blocks,
                          double* dweights, double* dbias);

// y = tanh(y), and dy *= 1 - y^2 for y = tanh(.).
void Tanh(float* y, std::size_t count);
void Tanh(double* y, std::size_t count);
void TanhBackward(const float* y, float* dy, std::size_t count);
void TanhBackward(const double* y, double* dy, std::size_t count);

// In place, for one block: z[j] -> z[j] - log(sum_k exp z[k]) over `actions` values of each row.
void LogSoftmax(float* z, int actions);
void LogSoftmax(double* z, int actions);

// y = exp(x); exp(0) is exactly 1.
void Exp(const float* x, float* y, std::size_t count);
void Exp(const double* x, double* y, std::size_t count);

}  // namespace dynamix
