// Sums of squares of a gradient, in one pass over its memory: some 40 MB for a ResNet18, in every
// iteration. Pure functions.
#pragma once

#include <cstddef>

namespace dynamix {

double SquaredNorm(const float* numbers, std::size_t count);
double SquaredNorm(const double* numbers, std::size_t count);

// Multiplies in place. Returns the squared norm before.
double Scale(float* numbers, std::size_t count, float factor);
double Scale(double* numbers, std::size_t count, double factor);

}  // namespace dynamix
