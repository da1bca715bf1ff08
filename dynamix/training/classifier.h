// A classifier and its data: one forward pass over samples, and the evaluation on held-out ones. A
// sample of text is a sequence: its loss and its accuracy are means over its tokens, each of which
// classifies the next one.
//
// Deterministic on one thread. Not thread-safe; one object per worker. Never fails by itself; what
// libtorch throws (out of memory) passes through.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "dynamix/training/batch_reader.h"
#include "dynamix/training/model.h"

namespace dynamix {

// Sums over samples.
struct PassSums {
  double samples = 0;
  double loss = 0;
  double correct = 0;
};

class Classifier {
 public:
  Classifier(const ModelOptions& options, const BatchReader& reader, std::uint64_t seed);

  // The sum of the samples' losses (cross entropy), ready for backward. Adds to `sums` all but the
  // loss, which costs a read-back: add loss.item() after backward.
  at::Tensor Forward(std::span<const Sample> samples, PassSums& sums);

  // Held-out samples first .. first + count - 1, in passes of at most `pass` samples; in smaller
  // ones when memory is short.
  PassSums Evaluate(int first, int count, int pass = 250);

  Model& model() { return model_; }
  const Model& model() const { return model_; }
  const BatchReader& reader() const { return reader_; }
  std::vector<at::Tensor> parameters() const;
  // Running statistics of batch norm: float tensors that are not trained.
  std::vector<at::Tensor> buffers() const;

 private:
  PassSums EvaluatePass(int first, int count);

  BatchReader reader_;
  Model model_;
};

// Whether libtorch, or the allocator below it, threw this for want of memory.
bool IsOutOfMemory(const std::exception& error);

// Loads `threads` into libtorch and the BLAS behind it. Call once, before any other call here; one
// thread is right when several ranks share a machine, and makes runs repeatable to the bit.
void SetThreads(int threads);

}  // namespace dynamix
