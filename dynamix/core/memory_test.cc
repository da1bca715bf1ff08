#include "dynamix/core/memory.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace dynamix {
namespace {

enum class Mood { kCalm, kBusy };

struct Inner {
  double number = 0;
  int count = 0;
  void VisitMemory(Memory& memory) { memory(number, count); }
  bool operator==(const Inner&) const = default;
};

struct Outer {
  std::vector<Inner> inner;
  std::deque<double> last;
  std::array<std::uint64_t, 2> words = {};
  std::string name;
  Mood mood = Mood::kCalm;
  bool on = false;
  void VisitMemory(Memory& memory) { memory(inner, last, words, name, mood, on); }
  bool operator==(const Outer&) const = default;
};

Outer Sample() {
  return {.inner = {{0.1, -3}, {-0.0, 1 << 30}},
          .last = {1e-320, 7},
          .words = {0xFEDCBA9876543210u, 1},
          .name = "goodput:step=4",
          .mood = Mood::kBusy,
          .on = true};
}

TEST(MemoryTest, EverythingComesBack) {
  Outer written = Sample();
  Memory memory;
  memory(written);
  EXPECT_EQ(written, Sample()) << "writing changes nothing";
  Outer read;
  read.inner.resize(5);
  Memory again(memory.numbers());
  again(read);
  again.ExpectEnd();
  EXPECT_EQ(read, Sample());
}

TEST(MemoryTest, AMissingNumberStaysMissing) {
  double missing = std::numeric_limits<double>::quiet_NaN(), read = 0;
  Memory memory;
  memory(missing);
  Memory(memory.numbers())(read);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(read), std::bit_cast<std::uint64_t>(missing));
}

TEST(MemoryTest, WhatIsNotWhatWasWrittenIsRefused) {
  Outer outer = Sample();
  Memory memory;
  memory(outer);
  std::vector<double> numbers = memory.numbers();
  Memory longer([&] {
    auto more = numbers;
    more.push_back(1);
    return more;
  }());
  longer(outer);
  EXPECT_THROW(longer.ExpectEnd(), InputError);
  Memory shorter(std::vector<double>(numbers.begin(), numbers.end() - 1));
  EXPECT_THROW(shorter(outer), InputError);
  for (const double size : {1e300, -1e300, 4e9, std::numeric_limits<double>::quiet_NaN()}) {
    numbers[0] = size;  // of a list
    EXPECT_THROW(Memory{numbers}(outer), InputError) << size;
  }
}

}  // namespace
}  // namespace dynamix
