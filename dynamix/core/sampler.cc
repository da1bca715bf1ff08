#include "dynamix/core/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "dynamix/core/batch.h"
#include "dynamix/core/check.h"
#include "dynamix/core/rng.h"

namespace dynamix {
namespace {

// Exactly `count` samples, each worker's part nearest to its share and at least `least`.
std::vector<int> Split(std::int64_t count, const std::vector<int>& batches, int least) {
  const std::vector<double> shares =
      Distribute(static_cast<double>(count), {batches.begin(), batches.end()},
                 std::vector<BatchBounds>(batches.size(),
                                          {.min = least, .max = std::numeric_limits<int>::max()}));
  // The ends of the parts are rounded, not the parts: those then add up.
  std::vector<int> parts;
  double end = 0;
  std::int64_t taken = 0;
  for (const double share : shares) {
    end += share;
    const std::int64_t upto = std::min<std::int64_t>(std::llround(end), count);
    parts.push_back(static_cast<int>(upto - taken));
    taken = upto;
  }
  parts.back() += static_cast<int>(count - taken);
  return parts;
}

}  // namespace

Sampler::Sampler(std::int64_t samples, std::uint64_t seed, std::int64_t cursor)
    : samples_(samples), seed_(seed), cursor_(cursor) {
  DYNAMIX_CHECK(samples > 0 && samples <= std::numeric_limits<std::uint32_t>::max(),
                "samples to order");
  DYNAMIX_CHECK(cursor >= 0, "the cursor counts samples");
}

const std::vector<std::uint32_t>& Sampler::Order(std::int64_t number) {
  Epoch& epoch = epochs_[number % 2];
  if (epoch.number != number) {
    epoch.number = number;
    epoch.order.resize(samples_);
    std::iota(epoch.order.begin(), epoch.order.end(), 0u);
    Rng rng = Rng(seed_).Fork(static_cast<std::uint64_t>(number));
    for (std::size_t i = epoch.order.size(); i > 1; --i)
      std::swap(epoch.order[i - 1], epoch.order[rng.Below(i)]);
  }
  return epoch.order;
}

std::vector<Sample> Sampler::At(std::int64_t position, std::int64_t count) {
  std::vector<Sample> part;
  part.reserve(count);
  while (static_cast<std::int64_t>(part.size()) < count) {
    const std::vector<std::uint32_t>& order = Order(position / samples_);
    std::int64_t offset = position % samples_;
    for (; offset < samples_ && static_cast<std::int64_t>(part.size()) < count; ++offset)
      part.push_back({position++, order[offset]});
  }
  return part;
}

std::vector<Sample> Sampler::Part(const std::vector<int>& batches, int rank) {
  DYNAMIX_CHECK(rank >= 0 && rank < static_cast<int>(batches.size()), "a rank of the job");
  std::int64_t begin = cursor_;
  for (int i = 0; i < rank; ++i) begin += batches[i];
  return At(begin, batches[rank]);
}

std::vector<int> Sampler::WithinEpoch(const std::vector<int>& batches) const {
  const auto workers = static_cast<std::int64_t>(batches.size());
  const std::int64_t left = samples_ - cursor_ % samples_;
  const std::int64_t rest = left - std::accumulate(batches.begin(), batches.end(), std::int64_t{0});
  const int least = std::min(2, *std::min_element(batches.begin(), batches.end()));
  if (rest == 0 || rest >= least * workers) return batches;
  return Split(left, batches, left >= least * workers ? least : 0);
}

void Sampler::Advance(const std::vector<int>& batches) {
  for (const int batch : batches) {
    DYNAMIX_CHECK(batch >= 0, "a local batch is not negative");
    cursor_ += batch;
  }
}

}  // namespace dynamix
