#include "dynamix/cli/closest.h"

#include <algorithm>

namespace dynamix {

// Optimal string alignment: row by row, three rows at a time.
int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& choices) {
  const int most = std::max(2, static_cast<int>(word.size()) / 3);
  const std::string* nearest = nullptr;
  int distance = most + 1;
  for (const std::string& choice : choices) {
    const int d = EditDistance(word, choice);
    // A short word is near to everything of its length.
    if (d >= distance || d >= static_cast<int>(choice.size())) continue;
    distance = d;
    nearest = &choice;
  }
  for (const std::string& choice : choices)
    if (nearest == nullptr && word.size() > 2 && choice.starts_with(word)) nearest = &choice;
  return nearest != nullptr ? "; did you mean " + *nearest + "?" : "";
}

}  // namespace dynamix
