#include "dynamix/page/dot_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "dynamix/page/assets.h"
#include "dynamix/page/text.h"

namespace dynamix {
namespace {

constexpr double kWidth = 760, kRight = 20, kBottom = 30;
constexpr double kAxisHeight = 30, kTitleHeight = 24;
constexpr double kNarrowestNames = 120, kLetter = 7;  // room for the rows' names
constexpr double kRowHeight = 64;                     // dots above, the bar below
constexpr double kDotBand = 40, kBarAt = 52, kRadius = 4;
constexpr int kLevels = 7;  // heights of dots in a row, so that equal ratios do not hide each other

std::string Pixel(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

class Drawing {
 public:
  // `alone`: as a file of its own, so with a title, which a page writes above the drawing.
  Drawing(const DotChart& chart, bool alone)
      : chart_(chart), alone_(alone), top_(kAxisHeight + (alone ? kTitleHeight : 0)) {
    for (const DotRow& row : chart.rows) {
      left_ = std::max(left_, kLetter * static_cast<double>(row.name.size()) + 8);
      for (const Dot& dot : row.dots) Widen(dot.ratio);
      Widen(row.low);
      Widen(row.high);
    }
    low_ = std::floor(2 * low_) / 2;
    high_ = std::ceil(2 * high_) / 2;
  }

  std::string Text() const {
    const std::string size = Pixel(kWidth) + " " + Pixel(Height());
    std::string svg = "<svg viewBox=\"0 0 " + size + "\" role=\"img\" aria-label=\"" +
                      Escape(chart_.title) + "\"";
    svg += alone_ ? " xmlns=\"http://www.w3.org/2000/svg\">" + Head() : ">";
    svg += Grid();
    for (std::size_t i = 0; i < chart_.rows.size(); ++i) svg += Row(i);
    return svg + "</svg>";
  }

 private:
  void Widen(double ratio) {
    low_ = std::min(low_, std::log2(ratio));
    high_ = std::max(high_, std::log2(ratio));
  }
  std::string Head() const {
    return "<style>" + std::string(kChartStyle) +
           "svg{background:var(--paper)}svg .title{font-size:14px;font-weight:600}</style>"
           "<text class=\"title\" x=\"2\" y=\"18\">" +
           Escape(chart_.title) + "</text>";
  }
  double Height() const {
    return top_ + kRowHeight * static_cast<double>(chart_.rows.size()) + kBottom;
  }
  double X(double ratio) const {
    return left_ + (kWidth - left_ - kRight) * (std::log2(ratio) - low_) / (high_ - low_);
  }

  std::string Grid() const {
    std::string svg;
    const double step = high_ - low_ > 4 ? 1 : 0.5;
    for (double tick = step * std::ceil(low_ / step); tick <= high_ + 1e-9; tick += step) {
      const double ratio = std::exp2(tick);
      const bool one = std::abs(tick) < 1e-9;
      const std::string x = Pixel(X(ratio));
      char label[16];
      std::snprintf(label, sizeof label, "%.3g", ratio);
      svg += "<line class=\"" + std::string(one ? "mark" : "grid") + "\" x1=\"" + x + "\" x2=\"" +
             x + "\" y1=\"" + Pixel(top_ - 6) + "\" y2=\"" + Pixel(Height() - kBottom) +
             "\"/><text class=\"tick\" x=\"" + x + "\" y=\"" + Pixel(Height() - 12) +
             "\" text-anchor=\"middle\">" + label + "</text>";
    }
    const std::string y = Pixel(top_ - 16);
    return svg + "<text class=\"axis\" x=\"" + Pixel(X(1) - 8) + "\" y=\"" + y +
           "\" text-anchor=\"end\">" + Escape(chart_.left) + "</text><text class=\"axis\" x=\"" +
           Pixel(X(1) + 8) + "\" y=\"" + y + "\">" + Escape(chart_.right) + "</text>";
  }

  std::string Row(std::size_t i) const {
    const DotRow& row = chart_.rows[i];
    const double top = top_ + kRowHeight * static_cast<double>(i);
    std::string svg = "<g class=\"c" + std::to_string(row.color % 8) + "\"><text x=\"2\" y=\"" +
                      Pixel(top + kDotBand / 2 + 4) + "\">" + Escape(row.name) + "</text>";
    int level = 0;
    for (const Dot& dot : Sorted(row.dots)) {
      const double y = top + 4 + kDotBand * (0.5 + level) / kLevels;
      // Three levels on: neighbours in ratio are never neighbours in height.
      level = (level + 3) % kLevels;
      svg += "<circle class=\"" + std::string(dot.hollow ? "hollow" : "dot") + "\" cx=\"" +
             Pixel(X(dot.ratio)) + "\" cy=\"" + Pixel(y) + "\" r=\"" + Pixel(kRadius) +
             "\"><title>" + Escape(dot.name) + "</title></circle>";
    }
    const std::string bar = Pixel(top + kBarAt);
    char label[96];
    std::snprintf(label, sizeof label, "%.3f [%.2f, %.2f]", row.mean, row.low, row.high);
    return svg + "<line class=\"interval\" x1=\"" + Pixel(X(row.low)) + "\" x2=\"" +
           Pixel(X(row.high)) + "\" y1=\"" + bar + "\" y2=\"" + bar +
           "\"/><circle class=\"mean\" cx=\"" + Pixel(X(row.mean)) + "\" cy=\"" + bar +
           "\" r=\"5\"><title>" + Escape(row.name) + ": " + label + "</title></circle></g>";
  }

  static std::vector<Dot> Sorted(std::vector<Dot> dots) {
    std::sort(dots.begin(), dots.end(),
              [](const Dot& a, const Dot& b) { return a.ratio < b.ratio; });
    return dots;
  }

  const DotChart& chart_;
  bool alone_;
  double top_, left_ = kNarrowestNames;
  double low_ = -0.5, high_ = 0.5;  // log2 of the ratios drawn
};

}  // namespace

std::string RenderDots(const DotChart& chart) {
  return "<figure class=\"dots\"><figcaption>" + Escape(chart.title) + "</figcaption>" +
         Drawing(chart, /*alone=*/false).Text() + "</figure>";
}

std::string RenderDotsFile(const DotChart& chart) {
  return Drawing(chart, /*alone=*/true).Text() + "\n";
}

}  // namespace dynamix
