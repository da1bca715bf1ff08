// The trainable numbers of a model, laid out for exchange: one flat buffer of values, cut into
// buckets in the order in which backward finishes them (last layer first), and one gradient buffer
// per bucket. Tensors and their gradients are views into these, so that an exchange, a norm or an
// optimizer step is a few operations on long vectors instead of a few per layer.
//
// Construction re-points the model's tensors (their values stay) and throws InputError unless all
// are float32 on the CPU. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace at {
class Tensor;
}

namespace dynamix {

class Parameters {
 public:
  // Larger than this and a bucket is closed (a single tensor may be larger).
  static constexpr std::size_t kBucketBytes = std::size_t{4} << 20;

  explicit Parameters(const std::vector<at::Tensor>& tensors,
                      std::size_t bucket_bytes = kBucketBytes);
  ~Parameters();
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // In bucket order.
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  // Indices into tensors(), consecutive.
  const std::vector<std::vector<std::size_t>>& buckets() const { return buckets_; }
  std::int64_t count() const { return count_; }

  // Values of all, and of each bucket (views of it).
  const at::Tensor& values() const { return *values_; }
  const std::vector<at::Tensor>& bucket_values() const { return bucket_values_; }
  // One flat buffer per bucket.
  const std::vector<at::Tensor>& gradients() const { return gradients_; }
  // Uses these buffers from now on (the exchange owns its own); one per bucket, of its length.
  void SetGradients(const std::vector<at::Tensor>& gradients);

  void ZeroGradients();
  double SquaredGradientNorm() const;

  // Copies, for tests, checks and callers without libtorch.
  std::vector<float> CopyValues() const;

 private:
  std::vector<at::Tensor> tensors_;
  std::vector<std::vector<std::size_t>> buckets_;
  std::int64_t count_ = 0;
  at::Tensor* values_;  // owned; a pointer because libtorch is only declared here
  std::vector<at::Tensor> bucket_values_, gradients_;
};

}  // namespace dynamix
