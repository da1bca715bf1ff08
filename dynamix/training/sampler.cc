#include "dynamix/training/sampler.h"

#include <limits>
#include <numeric>
#include <utility>

#include "dynamix/core/check.h"
#include "dynamix/core/rng.h"

namespace dynamix {

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

void Sampler::Advance(const std::vector<int>& batches) {
  for (const int batch : batches) {
    DYNAMIX_CHECK(batch >= 0, "a local batch is not negative");
    cursor_ += batch;
  }
}

}  // namespace dynamix
