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
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// "%.3g"-like, with a fixed number of digits after the point.
std::string Fixed(double value, int digits);

}  // namespace dynamix
