// A chart of ratios as inline SVG: one row per series, one dot per value on a logarithmic axis, 1
// marked, the row's mean and interval below its dots. No script; hovering a dot names it. Pure.
#pragma once

#include <string>
#include <vector>

namespace dynamix {

struct Dot {
  double ratio = 1;  // > 0
  std::string name;  // shown when hovered
  bool hollow = false;
};

struct DotRow {
  std::string name;
  std::vector<Dot> dots;
  int color = 0;                       // the series', >= 0; they come round again
  double mean = 1, low = 1, high = 1;  // of the bar; all > 0
};

struct DotChart {
  std::string title;
  std::string left, right;  // what it means to be below and above 1
  std::vector<DotRow> rows;
};

// <figure> with a caption and the drawing.
std::string RenderDots(const DotChart& chart);
// The same as an SVG file, with its title and its style inside.
std::string RenderDotsFile(const DotChart& chart);

}  // namespace dynamix
