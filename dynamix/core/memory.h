// Memory: what objects remember from round to round, as a list of numbers, for checkpoints.
//
// An object names its members once, in VisitMemory; the same list writes them and reads them back:
//
//   void VisitMemory(Memory& memory) { memory(loss_, batches_, guard_); }
//
// Members may be numbers, enums, texts, containers of these, and objects with a VisitMemory. Every
// bit comes back, and the length depends on what is remembered, not on how long it took. Reading
// what was not written by the same list throws InputError.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dynamix/core/input_error.h"

namespace dynamix {

class Memory {
 public:
  // Writes.
  Memory() = default;
  // Reads those numbers.
  explicit Memory(std::vector<double> numbers) : reads_(true), numbers_(std::move(numbers)) {}

  template <typename... Members>
  void operator()(Members&... members) {
    (Visit(members), ...);
  }

  bool reads() const { return reads_; }
  const std::vector<double>& numbers() const { return numbers_; }
  // After reading: everything was asked for. Throws InputError otherwise.
  void ExpectEnd() const {
    if (at_ != numbers_.size()) throw Foreign();
  }

 private:
  static InputError Foreign() {
    return InputError("what is remembered of the job was written by another version");
  }

  void Visit(double& number) {
    if (!reads_) return numbers_.push_back(number);
    if (at_ == numbers_.size()) throw Foreign();
    number = numbers_[at_++];
  }
  // Exact up to 2^53.
  template <typename Whole>
  requires(std::integral<Whole> || std::is_enum_v<Whole>) &&
      (sizeof(Whole) <= 4) void Visit(Whole& whole) {
    auto number = static_cast<double>(whole);
    Visit(number);
    if (!(number >= -0x1p31 && number < 0x1p32)) throw Foreign();
    whole = static_cast<Whole>(static_cast<std::int64_t>(number));
  }
  void Visit(std::uint64_t& word) {
    auto high = static_cast<std::uint32_t>(word >> 32), low = static_cast<std::uint32_t>(word);
    Visit(high);
    Visit(low);
    word = std::uint64_t{high} << 32 | low;
  }
  template <typename Object>
  requires requires(Object& object, Memory& memory) { object.VisitMemory(memory); }
  void Visit(Object& object) { object.VisitMemory(*this); }
  template <typename Item>
  void Visit(std::vector<Item>& items) {
    VisitItems(items);
  }
  template <typename Item>
  void Visit(std::deque<Item>& items) {
    VisitItems(items);
  }
  void Visit(std::string& text) { VisitItems(text); }
  template <typename Item, std::size_t count>
  void Visit(std::array<Item, count>& items) {
    for (Item& item : items) Visit(item);
  }
  template <typename Items>
  void VisitItems(Items& items) {
    auto count = static_cast<std::uint32_t>(items.size());
    Visit(count);
    if (reads_ && count > numbers_.size() - at_) throw Foreign();  // before so much is allocated
    items.resize(count);
    for (auto& item : items) Visit(item);
  }

  bool reads_ = false;
  std::vector<double> numbers_;
  std::size_t at_ = 0;
};

}  // namespace dynamix
