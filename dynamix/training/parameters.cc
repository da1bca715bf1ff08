#include "dynamix/training/parameters.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"

namespace dynamix {

Parameters::Parameters(const std::vector<at::Tensor>& tensors, std::size_t bucket_bytes)
    : tensors_(tensors.rbegin(), tensors.rend()), values_(new at::Tensor) {
  const at::NoGradGuard no_grad;
  if (tensors_.empty()) throw InputError("the model has no parameters");
  std::size_t open_bytes = bucket_bytes;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& tensor = tensors_[i];
    if (tensor.scalar_type() != at::kFloat || !tensor.device().is_cpu() || !tensor.requires_grad())
      throw InputError("parameter " + std::to_string(i) +
                       " from the end is not a trainable float32 tensor on the CPU");
    if (open_bytes >= bucket_bytes) {
      buckets_.emplace_back();
      open_bytes = 0;
    }
    buckets_.back().push_back(i);
    open_bytes += static_cast<std::size_t>(tensor.numel()) * sizeof(float);
    count_ += tensor.numel();
  }
  *values_ = at::empty({count_}, at::kFloat);
  std::int64_t offset = 0;
  std::vector<at::Tensor> gradients;
  for (const std::vector<std::size_t>& bucket : buckets_) {
    const std::int64_t begin = offset;
    for (const std::size_t i : bucket) {
      const at::Tensor view =
          values_->narrow(0, offset, tensors_[i].numel()).view(tensors_[i].sizes());
      view.copy_(tensors_[i]);
      tensors_[i].set_data(view);
      offset += tensors_[i].numel();
    }
    bucket_values_.push_back(values_->narrow(0, begin, offset - begin));
    gradients.push_back(at::zeros({offset - begin}, at::kFloat));
  }
  SetGradients(gradients);
}

Parameters::~Parameters() { delete values_; }

void Parameters::SetGradients(const std::vector<at::Tensor>& gradients) {
  DYNAMIX_CHECK(gradients.size() == buckets_.size(), "one gradient buffer per bucket");
  gradients_ = gradients;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    DYNAMIX_CHECK(gradients_[b].numel() == bucket_values_[b].numel(), "a buffer fits its bucket");
    std::int64_t offset = 0;
    for (const std::size_t i : buckets_[b]) {
      tensors_[i].mutable_grad() =
          gradients_[b].narrow(0, offset, tensors_[i].numel()).view(tensors_[i].sizes());
      offset += tensors_[i].numel();
    }
  }
}

void Parameters::ZeroGradients() {
  for (at::Tensor& gradient : gradients_) gradient.zero_();
}

double Parameters::SquaredGradientNorm() const {
  double sum = 0;
  for (const at::Tensor& gradient : gradients_) sum += at::dot(gradient, gradient).item<double>();
  return sum;
}

std::vector<float> Parameters::CopyValues() const {
  const float* data = values_->data_ptr<float>();
  return {data, data + count_};
}

}  // namespace dynamix
