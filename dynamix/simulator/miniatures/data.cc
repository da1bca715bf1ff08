// Fashion-MNIST (Xiao et al. 2017):
//
//   28 x 28 bytes
//   x = means of 4 x 4 blocks                  7 x 7 = 49 features
//   z = V^T (x - mean) / deviation             whitened principal components
//
// A first layer with rotation-invariant
// initial weights learns the same in this basis as on pixels (exactly so under SGD), and the
// feature spectrum becomes one scale per component.
#include "dynamix/simulator/miniatures/data.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "dynamix/core/check.h"
#include "dynamix/core/input_error.h"
#include "dynamix/core/rng.h"
#include "dynamix/simulator/idx_file.h"

namespace dynamix {
namespace {

constexpr int kImage = 28, kBlock = 4, kSide = kImage / kBlock, kPixels = kSide * kSide;
constexpr std::size_t kLargestFile = 60000 * kImage * kImage;

struct Images {
  std::vector<float> features;  // kPixels per image, [0, 1]
  std::vector<std::uint8_t> labels;
};

Images ReadImages(const std::filesystem::path& folder, const std::string& part) {
  const auto image_path = folder / (part + "-images-idx3-ubyte.gz");
  const auto label_path = folder / (part + "-labels-idx1-ubyte.gz");
  const IdxArray images = ReadIdxFile(image_path, 3, kLargestFile);
  IdxArray labels = ReadIdxFile(label_path, 1, kLargestFile);
  if (images.sizes[1] != kImage || images.sizes[2] != kImage)
    throw InputError("cannot read " + image_path.string() + ": images are not 28 x 28");
  if (labels.sizes[0] != images.sizes[0] ||
      *std::max_element(labels.data.begin(), labels.data.end()) > 9) {
    throw InputError("cannot read " + label_path.string() +
                     ": expected one label from 0 to 9 per image");
  }
  Images result{std::vector<float>(static_cast<std::size_t>(images.sizes[0]) * kPixels),
                std::move(labels.data)};
  const std::uint8_t* pixel = images.data.data();
  for (std::size_t at = 0; at < result.features.size(); at += kPixels) {
    float* features = result.features.data() + at;
    for (int y = 0; y < kImage; ++y)
      for (int x = 0; x < kImage; ++x)
        features[y / kBlock * kSide + x / kBlock] += static_cast<float>(*pixel++);
    for (int i = 0; i < kPixels; ++i) features[i] /= 255.0f * kBlock * kBlock;
  }
  return result;
}

std::vector<double> Mean(const std::vector<float>& features) {
  std::vector<double> mean(kPixels, 0.0);
  for (std::size_t i = 0; i < features.size(); ++i) mean[i % kPixels] += features[i];
  for (double& value : mean) value *= kPixels / static_cast<double>(features.size());
  return mean;
}

using Square = std::vector<double>;  // kPixels x kPixels, row-major

Square Covariance(const std::vector<float>& features, const std::vector<double>& mean) {
  Square covariance(kPixels * kPixels, 0.0);
  std::vector<double> row(kPixels);
  const std::size_t count = features.size() / kPixels;
  for (std::size_t n = 0; n < count; ++n) {
    for (int i = 0; i < kPixels; ++i) row[i] = features[n * kPixels + i] - mean[i];
    for (int i = 0; i < kPixels; ++i)
      for (int j = 0; j < kPixels; ++j) covariance[i * kPixels + j] += row[i] * row[j];
  }
  for (double& value : covariance) value /= static_cast<double>(count);
  return covariance;
}

// One Jacobi rotation in the plane (p, q) of the symmetric `a`, accumulated in the columns of
// `vectors`.
void Rotate(Square& a, Square& vectors, int p, int q) {
  const double off = a[p * kPixels + q];
  if (off == 0) return;
  const double theta = (a[q * kPixels + q] - a[p * kPixels + p]) / (2 * off);
  const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1), s = t * c;
  const auto mix = [c, s](double& x, double& y) {
    const double old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  };
  for (int k = 0; k < kPixels; ++k) mix(a[k * kPixels + p], a[k * kPixels + q]);
  for (int k = 0; k < kPixels; ++k) mix(a[p * kPixels + k], a[q * kPixels + k]);
  for (int k = 0; k < kPixels; ++k) mix(vectors[k * kPixels + p], vectors[k * kPixels + q]);
}

struct Components {
  std::vector<double> deviations;  // descending
  Square vectors;                  // column d belongs to deviations[d]
};

Components PrincipalComponents(Square covariance) {
  Square vectors(kPixels * kPixels, 0.0);
  for (int i = 0; i < kPixels; ++i) vectors[i * kPixels + i] = 1;
  // Convergence is quadratic: off-diagonals are at rounding level after about 8 sweeps.
  constexpr int kSweeps = 12;
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (int p = 0; p < kPixels; ++p)
      for (int q = p + 1; q < kPixels; ++q) Rotate(covariance, vectors, p, q);
  std::vector<int> order(kPixels);
  std::iota(order.begin(), order.end(), 0);
  const auto variance = [&](int d) { return covariance[d * kPixels + d]; };
  std::sort(order.begin(), order.end(), [&](int i, int j) { return variance(i) > variance(j); });
  Components components{std::vector<double>(kPixels), Square(kPixels * kPixels)};
  for (int d = 0; d < kPixels; ++d) {
    // The floor keeps a constant component (not in Fashion-MNIST) from being divided by 0.
    components.deviations[d] = std::sqrt(std::max(variance(order[d]), 1e-12));
    for (int k = 0; k < kPixels; ++k)
      components.vectors[k * kPixels + d] = vectors[k * kPixels + order[d]];
  }
  return components;
}

void Project(const Images& images, const std::vector<double>& mean, const Components& components,
             std::uint16_t* rows, int stride) {
  AlignedFloats matrix(static_cast<std::size_t>(kPixels) * stride, 0.0f), start(stride, 0.0f);
  for (int k = 0; k < kPixels; ++k) {
    for (int d = 0; d < kPixels; ++d) {
      const double weight = components.vectors[k * kPixels + d] / components.deviations[d];
      matrix[k * stride + d] = static_cast<float>(weight);
      start[d] -= static_cast<float>(weight * mean[k]);
    }
  }
  const int count = static_cast<int>(images.labels.size());
  AlignedFloats projected(static_cast<std::size_t>(count) * stride);
  Multiply(count, stride, kPixels, {images.features.data(), kPixels, 1}, matrix.data(), stride,
           start.data(), 0, projected.data(), stride);
  std::transform(projected.begin(), projected.end(), rows, ToBfloat16);
}

}  // namespace

std::shared_ptr<const FeaturePool> LoadFashionPool(const std::filesystem::path& folder) try {
  const Images training = ReadImages(folder, "train");
  const Images held_out = ReadImages(folder, "t10k");
  const std::vector<double> mean = Mean(training.features);
  Components components = PrincipalComponents(Covariance(training.features, mean));
  auto pool = std::make_shared<FeaturePool>();
  pool->inputs = kPixels;
  pool->stride = PadToLanes(kPixels);
  pool->training_count = static_cast<int>(training.labels.size());
  pool->held_out_count = static_cast<int>(held_out.labels.size());
  const std::size_t training_floats = training.labels.size() * pool->stride;
  pool->rows.resize(training_floats + held_out.labels.size() * pool->stride);
  Project(training, mean, components, pool->rows.data(), pool->stride);
  Project(held_out, mean, components, pool->rows.data() + training_floats, pool->stride);
  pool->labels = training.labels;
  pool->labels.insert(pool->labels.end(), held_out.labels.begin(), held_out.labels.end());
  pool->deviations = std::move(components.deviations);
  return pool;
} catch (const InputError& error) {
  throw InputError(std::string(error.what()) +
                   "; Fashion-MNIST is in the Debian package dataset-fashion-mnist: install it, or "
                   "name the folder that holds its four files");
}

std::shared_ptr<const FeaturePool> MakeGaussianPool(std::uint64_t seed, int training_count,
                                                    int held_out_count, int inputs) {
  DYNAMIX_CHECK(training_count > 0 && held_out_count > 0 && inputs > 0, "sizes of the pool");
  auto pool = std::make_shared<FeaturePool>();
  pool->inputs = inputs;
  pool->stride = PadToLanes(inputs);
  pool->training_count = training_count;
  pool->held_out_count = held_out_count;
  const int count = training_count + held_out_count;
  pool->rows.assign(static_cast<std::size_t>(count) * pool->stride, 0);
  Rng rng(seed);
  for (int r = 0; r < count; ++r) {
    std::uint16_t* row = pool->rows.data() + static_cast<std::size_t>(r) * pool->stride;
    for (int d = 0; d < inputs; ++d) row[d] = ToBfloat16(static_cast<float>(rng.Normal()));
  }
  for (int d = 0; d < inputs; ++d) pool->deviations.push_back(std::pow(d + 1.0, -0.5));
  return pool;
}

}  // namespace dynamix
