#include "dynamix/evaluation/table.h"

#include <algorithm>
#include <cstdio>

namespace dynamix {

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Table::Text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string padding(widths[i] - rows_[r][i].size(), ' ');
      if (i > 0) text += "  ";
      text += i == 0 ? rows_[r][i] + padding : padding + rows_[r][i];
    }
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
    if (r > 0) continue;
    std::size_t total = 2 * (widths.size() - 1);
    for (std::size_t width : widths) total += width;
    text += std::string(total, '-') + '\n';
  }
  return text;
}

}  // namespace dynamix
