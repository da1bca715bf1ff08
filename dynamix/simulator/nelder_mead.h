// Nelder and Mead's downhill simplex (1965): the minimum of a function of a few numbers, without
// derivatives. Deterministic. For calibration, where one evaluation costs a millisecond.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace dynamix {

using Point = std::vector<double>;

// Starts from `start` and `start` plus `step` in each coordinate; at most `evaluations` calls.
inline Point Minimize(const std::function<double(const Point&)>& function, const Point& start,
                      double step, int evaluations) {
  struct Corner {
    Point at;
    double value;
  };
  std::vector<Corner> simplex = {{start, function(start)}};
  for (std::size_t d = 0; d < start.size(); ++d) {
    Point at = start;
    at[d] += step;
    simplex.push_back({at, function(at)});
  }
  int left = evaluations - static_cast<int>(simplex.size());
  const auto worse = [](const Corner& a, const Corner& b) { return a.value < b.value; };
  while (left > 0) {
    std::sort(simplex.begin(), simplex.end(), worse);
    Corner& last = simplex.back();
    Point middle(start.size(), 0.0);
    for (std::size_t i = 0; i + 1 < simplex.size(); ++i)
      for (std::size_t d = 0; d < middle.size(); ++d)
        middle[d] += simplex[i].at[d] / static_cast<double>(start.size());
    const auto along = [&](double factor) {
      Corner corner{middle, 0};
      for (std::size_t d = 0; d < middle.size(); ++d)
        corner.at[d] += factor * (last.at[d] - middle[d]);
      corner.value = function(corner.at);
      --left;
      return corner;
    };
    const Corner reflected = along(-1);
    if (reflected.value < simplex.front().value) {
      const Corner expanded = along(-2);
      last = expanded.value < reflected.value ? expanded : reflected;
    } else if (reflected.value < simplex[simplex.size() - 2].value) {
      last = reflected;
    } else if (const Corner inside = along(reflected.value < last.value ? -0.5 : 0.5);
               inside.value < std::min(reflected.value, last.value)) {
      last = inside;
    } else {
      for (std::size_t i = 1; i < simplex.size(); ++i, --left) {
        for (std::size_t d = 0; d < start.size(); ++d)
          simplex[i].at[d] = 0.5 * (simplex[i].at[d] + simplex[0].at[d]);
        simplex[i].value = function(simplex[i].at);
      }
    }
  }
  return std::min_element(simplex.begin(), simplex.end(), worse)->at;
}

}  // namespace dynamix
