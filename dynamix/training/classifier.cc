#include "dynamix/training/classifier.h"

#include <dlfcn.h>
#include <torch/torch.h>

#include <algorithm>
#include <new>
#include <string_view>

namespace dynamix {
namespace {

int CountCorrect(const at::Tensor& scores, const at::Tensor& labels) {
  const at::Tensor rows = scores.contiguous();
  const std::int64_t classes = rows.size(1);
  const float* score = rows.data_ptr<float>();
  const std::int64_t* label = labels.data_ptr<std::int64_t>();
  int correct = 0;
  for (std::int64_t i = 0; i < rows.size(0); ++i, score += classes)
    correct += std::max_element(score, score + classes) - score == label[i];
  return correct;
}

at::Tensor EmptyImages(const ImageShape& shape, std::int64_t count) {
  return at::empty({count, shape.channels, shape.height, shape.width}, at::kFloat);
}

}  // namespace

Classifier::Classifier(const ModelOptions& options, const BatchReader& reader, std::uint64_t seed)
    : reader_(reader),
      model_(MakeModel(options, reader.data().shape, reader.data().classes, seed)) {}

at::Tensor Classifier::Forward(std::span<const Sample> samples, PassSums& sums) {
  const auto count = static_cast<std::int64_t>(samples.size());
  const at::Tensor images = EmptyImages(reader_.data().shape, count);
  const at::Tensor labels = at::empty({count}, at::kLong);
  reader_.ReadTraining(samples, images.data_ptr<float>(), labels.data_ptr<std::int64_t>());
  const at::Tensor scores = model_.forward(images);
  sums.samples += static_cast<double>(count);
  sums.correct += CountCorrect(scores, labels);
  return at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum);
}

PassSums Classifier::EvaluatePass(int first, int count) {
  const at::Tensor images = EmptyImages(reader_.data().shape, count);
  const at::Tensor labels = at::empty({count}, at::kLong);
  reader_.ReadHeldOut(first, count, images.data_ptr<float>(), labels.data_ptr<std::int64_t>());
  const at::Tensor scores = model_.forward(images);
  PassSums sums;
  sums.samples = count;
  sums.correct = CountCorrect(scores, labels);
  sums.loss = at::cross_entropy_loss(scores, labels, {}, at::Reduction::Sum).item<double>();
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
