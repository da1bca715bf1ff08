#include "dynamix/evaluation/table.h"

#include <algorithm>
#include <cstdio>

namespace dynamix {

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void Table::AddBlock(const std::vector<std::size_t>& columns,
                     const std::vector<std::size_t>& widths, std::string& text) const {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::size_t total = 0;
    for (const std::size_t i : columns) {
      const std::string padding(widths[i] - rows_[r][i].size(), ' ');
      if (i > 0) text += "  ";
      text += i == 0 ? rows_[r][i] + padding : padding + rows_[r][i];
      total += widths[i] + (i > 0 ? 2 : 0);
    }
    while (text.ends_with(' ')) text.pop_back();
    text += '\n';
    if (r == 0) text += std::string(total, '-') + '\n';
  }
}

std::string Table::Text(std::size_t width) const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (std::size_t next = 1, first = true; first || next < widths.size(); first = false) {
    if (!first) text += '\n';
    std::vector<std::size_t> columns = {0};
    for (std::size_t total = widths[0]; next < widths.size(); ++next) {
      total += 2 + widths[next];
      if (width > 0 && total > width && columns.size() > 1) break;
      columns.push_back(next);
    }
    AddBlock(columns, widths, text);
  }
  return text;
}

}  // namespace dynamix
