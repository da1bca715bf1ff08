// A line chart as inline SVG: no script, colours by CSS class (c0 ... c7), so that one page serves
// light, dark and print. Pure.
#pragma once

#include <string>
#include <vector>

namespace dynamix {

struct ChartLine {
  std::string name;
  std::vector<double> x, y;  // a point whose y is missing is left out
  int color = 0;
};

// Something that lasted, drawn behind the lines.
struct ChartBand {
  double begin, end;
  std::string label;
};

struct Chart {
  std::string title;
  std::string y_name;
  std::vector<ChartLine> lines;
  std::vector<ChartBand> bands;
  double x_high = 0;  // 0: the largest x
  double mark = 0;    // a dashed line at this y; 0: none
  std::string mark_name;
  double y_low = 0;   // points below are left out; 0: none is
  double y_high = 0;  // points above are left out; 0: none is
  bool log2_y = false;
};

// <figure> with a caption, the drawing and a legend.
std::string RenderChart(const Chart& chart);

// Text for HTML.
std::string Escape(const std::string& text);
// At most four significant digits, without exponent where people expect none.
std::string Short(double value);

}  // namespace dynamix
