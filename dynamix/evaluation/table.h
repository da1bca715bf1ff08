// A plain text table: first column left-aligned, the others right-aligned. For people; machines use
// --json.
#pragma once

#include <string>
#include <vector>

namespace dynamix {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // `width` > 0: no line is longer, if the first column and one more fit. Columns that do not fit
  // follow in further blocks of rows, each with the first column before it.
  std::string Text(std::size_t width = 0) const;

 private:
  void AddBlock(const std::vector<std::size_t>& columns, const std::vector<std::size_t>& widths,
                std::string& text) const;

  std::vector<std::vector<std::string>> rows_;
};

// "%.3g"-like, with a fixed number of digits after the point.
std::string Fixed(double value, int digits);

}  // namespace dynamix
