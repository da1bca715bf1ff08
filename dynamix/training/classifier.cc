#include "dynamix/training/classifier.h"

#include <dlfcn.h>
#include <torch/torch.h>

#include <algorithm>
#include <new>
#include <string_view>

namespace dynamix {
namespace {

double CountCorrect(const at::Tensor& scores, const at::Tensor& labels) {
  const at::Tensor rows = scores.contiguous();
  const std::int64_t classes = rows.size(1);
  const float* score = rows.data_ptr<float>();
  const std::int64_t* label = labels.data_ptr<std::int64_t>();
  int correct = 0;
  for (std::int64_t i = 0; i < rows.size(0); ++i, score += classes)
    correct += std::max_element(score, score + classes) - score == label[i];
  return correct;
}

// Samples as a model takes them, and their labels in one row.
struct Batch {
  Batch(const SampleShape& shape, std::int64_t count)
      : inputs(shape.is_text()
                   ? at::empty({count, shape.tokens}, at::kLong)
                   : at::empty({count, shape.channels, shape.height, shape.width}, at::kFloat)),
        labels(at::empty({count * shape.labels()}, at::kLong)) {}

  // read(inputs, labels) for the type that the shape has.
  template <typename Read>
  void Fill(const SampleShape& shape, const Read& read) {
    if (shape.is_text()) {
      read(inputs.data_ptr<std::int64_t>(), labels.data_ptr<std::int64_t>());
    } else {
      read(inputs.data_ptr<float>(), labels.data_ptr<std::int64_t>());
    }
  }

  at::Tensor inputs, labels;
};

// The sum over samples of the mean loss of a sample's labels.
at::Tensor LossSum(const at::Tensor& scores, const Batch& batch, const SampleShape& shape) {
  const at::Tensor sum = at::cross_entropy_loss(scores, batch.labels, {}, at::Reduction::Sum);
  return shape.labels() == 1 ? sum : sum / shape.labels();
}

}  // namespace

Classifier::Classifier(const ModelOptions& options, const BatchReader& reader, std::uint64_t seed)
    : reader_(reader),
      model_(MakeModel(options, reader.data().shape, reader.data().classes, seed)) {}

at::Tensor Classifier::Forward(std::span<const Sample> samples, PassSums& sums) {
  const SampleShape& shape = reader_.data().shape;
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch(shape, count);
  batch.Fill(shape, [&](auto* inputs, std::int64_t* labels) {
    reader_.ReadTraining(samples, inputs, labels);
  });
  const at::Tensor scores = model_.forward(batch.inputs);
  sums.samples += static_cast<double>(count);
  sums.correct += CountCorrect(scores, batch.labels) / shape.labels();
  return LossSum(scores, batch, shape);
}

PassSums Classifier::EvaluatePass(int first, int count) {
  const SampleShape& shape = reader_.data().shape;
  Batch batch(shape, count);
  batch.Fill(shape, [&](auto* inputs, std::int64_t* labels) {
    reader_.ReadHeldOut(first, count, inputs, labels);
  });
  const at::Tensor scores = model_.forward(batch.inputs);
  PassSums sums;
  sums.samples = count;
  sums.correct = CountCorrect(scores, batch.labels) / shape.labels();
  sums.loss = LossSum(scores, batch, shape).item<double>();
  return sums;
}

PassSums Classifier::Evaluate(int first, int count, int pass) {
  const torch::NoGradGuard no_grad;
  model_.module->eval();
  PassSums sums;
  for (int done = 0; done < count;) {
    const int size = std::min(pass, count - done);
    try {
      const PassSums more = EvaluatePass(first + done, size);
      sums.samples += more.samples;
      sums.correct += more.correct;
      sums.loss += more.loss;
      done += size;
    } catch (const std::exception& error) {
      if (!IsOutOfMemory(error) || size == 1) throw;
      pass = size / 2;
    }
  }
  model_.module->train();
  return sums;
}

std::vector<at::Tensor> Classifier::parameters() const { return model_.module->parameters(); }

std::vector<at::Tensor> Classifier::buffers() const {
  std::vector<at::Tensor> all = model_.module->buffers();
  std::erase_if(all, [](const at::Tensor& buffer) { return buffer.scalar_type() != at::kFloat; });
  return all;
}

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return true;
  const std::string_view text = error.what();
  return text.find("can't allocate memory") != std::string_view::npos ||
         text.find("out of memory") != std::string_view::npos;
}

void SetThreads(int threads) {
  at::set_num_threads(threads);
  // Debian's libtorch calls whatever BLAS is installed; OpenBLAS has threads of its own.
  using SetBlasThreads = void (*)(int);
  if (auto* set = reinterpret_cast<SetBlasThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
    set(threads);
}

}  // namespace dynamix
