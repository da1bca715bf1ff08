#include "dynamix/ppo/adam.h"

#include <cmath>

#include "dynamix/core/simd.h"

#define DYNAMIX_INLINE inline __attribute__((always_inline))

namespace dynamix {
namespace {

constexpr double kFirstDecay = 0.9, kSecondDecay = 0.999;

template <typename T>
struct Scales {
  T size, root, epsilon;  // rate / (1 - b1^t), 1 / sqrt(1 - b2^t)
};

template <typename T>
DYNAMIX_INLINE void StepBody(std::size_t count, const Scales<T>& scales, const T* g, T* m, T* v,
                             T* p) {
  const T b1 = T(kFirstDecay), c1 = T(1 - kFirstDecay);
  const T b2 = T(kSecondDecay), c2 = T(1 - kSecondDecay);
  for (std::size_t i = 0; i < count; ++i) {
    m[i] = b1 * m[i] + c1 * g[i];
    v[i] = b2 * v[i] + c2 * g[i] * g[i];
    p[i] -= scales.size * m[i] / (std::sqrt(v[i]) * scales.root + scales.epsilon);
  }
}

DYNAMIX_SIMD void StepAll(std::size_t count, const Scales<float>& scales, const float* g, float* m,
                          float* v, float* p) {
  StepBody(count, scales, g, m, v, p);
}
DYNAMIX_SIMD void StepAll(std::size_t count, const Scales<double>& scales, const double* g,
                          double* m, double* v, double* p) {
  StepBody(count, scales, g, m, v, p);
}

template <typename T>
double ClipBody(std::span<T> gradient, double longest) {
  // Sixteen partial sums: a fixed order that still vectorises.
  double sums[16] = {};
  const std::size_t whole = gradient.size() / 16 * 16;
  for (std::size_t i = 0; i < whole; i += 16)
    for (int k = 0; k < 16; ++k)
      sums[k] += static_cast<double>(gradient[i + k]) * static_cast<double>(gradient[i + k]);
  for (std::size_t i = whole; i < gradient.size(); ++i)
    sums[0] += static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]);
  double sum = 0;
  for (const double s : sums) sum += s;
  const double norm = std::sqrt(sum), scale = longest / (norm + 1e-6);
  if (scale < 1)
    for (T& g : gradient) g *= static_cast<T>(scale);
  return norm;
}

}  // namespace

template <typename T>
void Adam<T>::Step(std::span<T> parameters, std::span<const T> gradient, double rate,
                   double epsilon) {
  ++steps;
  const auto t = static_cast<double>(steps);
  const Scales<T> scales{.size = T(rate / (1 - std::pow(kFirstDecay, t))),
                         .root = T(1 / std::sqrt(1 - std::pow(kSecondDecay, t))),
                         .epsilon = T(epsilon)};
  StepAll(parameters.size(), scales, gradient.data(), first.data(), second.data(),
          parameters.data());
}

double ClipGradient(std::span<float> gradient, double longest) {
  return ClipBody(gradient, longest);
}
double ClipGradient(std::span<double> gradient, double longest) {
  return ClipBody(gradient, longest);
}

template struct Adam<float>;
template struct Adam<double>;

}  // namespace dynamix
