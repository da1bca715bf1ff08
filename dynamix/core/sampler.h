// The global sampler: which samples each worker reads in each iteration.
//
// The job reads one endless stream of positions 0, 1, 2, ...; position p is entry p mod n of the
// seeded permutation of epoch p / n. One cursor, shared because every worker advances it by the
// same agreed batches, so that each sample is read exactly once per epoch whatever the batches do,
// who joins, or where the job was resumed: the whole state is (samples, seed, cursor). A batch may
// cross the end of an epoch or be larger than one; a job that ends its epochs exactly asks
// WithinEpoch. Not thread-safe; never fails.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace dynamix {

// One sample of one pass.
struct Sample {
  std::int64_t position;  // in the job's stream: seeds the augmentation
  std::int64_t index;     // in the data set
};

class Sampler {
 public:
  Sampler(std::int64_t samples, std::uint64_t seed, std::int64_t cursor = 0);

  // Samples of `rank` in the iteration that begins at the cursor: the workers' parts follow each
  // other in order of rank.
  std::vector<Sample> Part(const std::vector<int>& batches, int rank);
  // `count` samples from `position` on.
  std::vector<Sample> At(std::int64_t position, std::int64_t count);
  // What each worker takes in the iteration that begins at the cursor, when the job reads no sample
  // of the next epoch: `batches` until the last iteration, which takes exactly what is left. Its
  // parts are in proportion to `batches`. A rest too small to give everybody two samples (batch norm
  // needs two) is added to the iteration before it. 0 only when fewer samples than workers are left.
  std::vector<int> WithinEpoch(const std::vector<int>& batches) const;
  // Ends the iteration.
  void Advance(const std::vector<int>& batches);

  std::int64_t cursor() const { return cursor_; }  // samples read by the job so far
  std::int64_t samples() const { return samples_; }
  std::int64_t epoch() const { return cursor_ / samples_; }

 private:
  struct Epoch {
    std::int64_t number = -1;
    std::vector<std::uint32_t> order;
  };
  const std::vector<std::uint32_t>& Order(std::int64_t epoch);

  std::int64_t samples_;
  std::uint64_t seed_;
  std::int64_t cursor_;
  std::array<Epoch, 2> epochs_;  // by parity: an iteration may need this one and the next
};

}  // namespace dynamix
