// Seeded random numbers: xoshiro256** (Blackman and Vigna 2018), seeded by SplitMix64.
//
// Same seed, same numbers on every machine (std:: distributions differ between libraries, so none
// are used). The whole state is four words and can be saved and restored, which is what makes a
// resumed run continue exactly. Not thread-safe: give each thread a Fork().
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace dynamix {

class Rng {
 public:
  using State = std::array<std::uint64_t, 4>;

  explicit Rng(std::uint64_t seed) {
    for (auto& word : state_) word = SplitMix(seed);
  }
  explicit Rng(const State& state) : state_(state) {}

  const State& state() const { return state_; }

  std::uint64_t Next() {
    const std::uint64_t result = RotateLeft(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = RotateLeft(state_[3], 45);
    return result;
  }

  // In [0, 1), 53 random bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  // Log-uniform in [low, high); both positive.
  double LogUniform(double low, double high) {
    return std::exp(Uniform(std::log(low), std::log(high)));
  }
  // In [0, bound), bound > 0; unbiased (Lemire 2019, without the rejection's division on the fast
  // path).
  std::uint64_t Below(std::uint64_t bound) {
    while (true) {
      const Wide product = static_cast<Wide>(Next()) * bound;
      const auto low = static_cast<std::uint64_t>(product);
      if (low >= bound || low >= (-bound) % bound) return static_cast<std::uint64_t>(product >> 64);
    }
  }
  // Standard normal (Box-Muller; the second value is thrown away so that the state stays four
  // words).
  double Normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * Uniform());
  }

  // An independent generator for sub-stream `stream`; does not advance this one.
  Rng Fork(std::uint64_t stream) const {
    std::uint64_t seed = state_[0] ^ RotateLeft(state_[3], 23) ^ (stream * 0x9E3779B97F4A7C15ULL);
    Rng child(SplitMix(seed));
    return child;
  }

 private:
  __extension__ using Wide = unsigned __int128;

  static std::uint64_t RotateLeft(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  static std::uint64_t SplitMix(std::uint64_t& seed) {
    std::uint64_t z = (seed += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  State state_{};
};

}  // namespace dynamix
