// Batch bounds, and the two pure functions that keep every batch size inside them.
#pragma once

#include <string_view>
#include <vector>

namespace dynamix {

inline constexpr int kLargestBatch = 1 << 24;  // samples; of any kind of batch

// What a worker can run. Invariants (Validate):
//   1 <= min <= max
//   granularity >= 1, and a multiple of it lies in [min, max]
//   0 <= dead_band < 1
struct BatchBounds {
  int min = 8;           // smallest local batch
  int max = 1024;        // largest local batch, also after an out-of-memory lowered it
  int granularity = 1;   // local batches are multiples of this (tensor cores like 8)
  double dead_band = 0;  // relative changes smaller than this are not made; 0 makes every change

  // Throws InputError naming `field` when an invariant is broken.
  void Validate(std::string_view field) const;
  // The smallest and largest legal batch.
  int lowest() const;
  int highest() const;
};

// The legal batch nearest to `wanted`; `current` when the change is inside the dead band (and
// current is legal) or when `wanted` is not a number.
int ClampBatch(double wanted, int current, const BatchBounds& bounds);

// Splits `total` in proportion to `weights` so that each part stays inside its bounds: what one
// worker cannot take goes to the others (water filling). The sum is `total` whenever the bounds
// allow it. Real-valued: rounding is ClampBatch's. Weights that are zero, negative or not numbers
// count as the mean of the others.
std::vector<double> Distribute(double total, const std::vector<double>& weights,
                               const std::vector<BatchBounds>& bounds);

}  // namespace dynamix
