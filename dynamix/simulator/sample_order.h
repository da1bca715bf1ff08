// The order in which a job reads its samples: a seeded permutation of all of them and one cursor
// shared by all workers, so that every sample is read exactly once per epoch whatever the batches
// do.
//
// A batch may cross the end of an epoch, or be larger than one: the next permutation starts where
// it ends. A value type: a copy continues identically. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dynamix/core/check.h"
#include "dynamix/core/rng.h"

namespace dynamix {

class SampleOrder {
 public:
  // Each element of `samples` stands for one sample; not empty.
  SampleOrder(std::vector<std::uint32_t> samples, const Rng& rng)
      : rng_(rng), order_(std::move(samples)) {
    DYNAMIX_CHECK(!order_.empty(), "samples to order");
    Shuffle();
  }

  // Calls visit(sample) for the next `count` samples, in order.
  template <typename Visit>
  void Take(int count, const Visit& visit) {
    for (int i = 0; i < count; ++i) {
      if (cursor_ == order_.size()) Shuffle();
      visit(order_[cursor_++]);
    }
  }

  // What the next `count` samples will be, as far as this epoch goes; valid until the next Take.
  std::span<const std::uint32_t> Peek(int count) const {
    return {order_.data() + cursor_,
            std::min(order_.size() - cursor_, static_cast<std::size_t>(count))};
  }

 private:
  void Shuffle() {
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng_.Below(i)]);
    cursor_ = 0;
  }

  Rng rng_;
  std::vector<std::uint32_t> order_;
  std::size_t cursor_ = 0;
};

}  // namespace dynamix
