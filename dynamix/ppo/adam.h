// Adam (Kingma and Ba 2015, arXiv 1412.6980) as torch.optim.Adam computes it, and the gradient-norm
// clip.
//
//   m = b1 m + (1 - b1) g                                       b1 = 0.9
//   v = b2 v + (1 - b2) g^2                                     b2 = 0.999
//   p = p - rate / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + epsilon)
//
// A plain value: moments and step count are the whole state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dynamix {

template <typename T>
struct Adam {
  explicit Adam(std::size_t parameters) : first(parameters), second(parameters) {}

  std::vector<T> first, second;  // moments m and v
  std::int64_t steps = 0;        // t

  void Step(std::span<T> parameters, std::span<const T> gradient, double rate, double epsilon);
};

// Scales `gradient` to at most `longest` and returns its norm before, as
// torch.nn.utils.clip_grad_norm_ does.
double ClipGradient(std::span<float> gradient, double longest);
double ClipGradient(std::span<double> gradient, double longest);

extern template struct Adam<float>;
extern template struct Adam<double>;

}  // namespace dynamix
