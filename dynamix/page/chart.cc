#include "dynamix/page/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "dynamix/core/report.h"

namespace dynamix {
namespace {

constexpr double kWidth = 760, kHeight = 270, kLeft = 62, kBottom = 36, kTop = 26, kRight = 14;
constexpr std::size_t kMostPoints = 500;  // more than the eye can tell apart here

std::string Pixel(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// 1, 2 or 5 times a power of ten, about a fifth of the range.
double NiceStep(double range) {
  const double raw = range / 5, power = std::pow(10, std::floor(std::log10(raw)));
  const double lead = raw / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

struct Axis {
  double low = HUGE_VAL, high = -HUGE_VAL;
  std::vector<double> ticks;

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void Finish() {
    if (!(high > low)) {
      low = std::isfinite(low) ? low - 0.5 : 0;
      high = low + 1;
    }
    const double step = NiceStep(high - low);
    low = step * std::floor(low / step + 1e-9);
    high = step * std::ceil(high / step - 1e-9);
    for (int i = 0; low + i * step <= high + 0.01 * step; ++i) ticks.push_back(low + i * step);
  }
  // Whole powers of two: `low` and `high` are logarithms.
  void FinishLog() {
    low = std::floor(std::isfinite(low) ? low : 0);
    high = std::ceil(std::isfinite(high) ? high : 1);
    if (high == low) {
      --low;
      ++high;
    }
    const double step = std::ceil((high - low) / 6);
    for (double tick = low; tick <= high; tick += step) ticks.push_back(tick);
  }
  double Share(double value) const { return (value - low) / (high - low); }
};

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    x_.Add(0);
    x_.Add(chart.x_high);
    for (const ChartLine& line : chart.lines) {
      for (std::size_t i = 0; i < line.x.size(); ++i) {
        if (!Drawn(line.y[i])) continue;
        if (chart.x_high <= 0) x_.Add(line.x[i]);
        y_.Add(Scaled(line.y[i]));
      }
    }
    if (chart.mark > 0) y_.Add(Scaled(chart.mark));
    const double end = x_.high;
    x_.Finish();
    x_.high = end > 0 ? end : x_.high;  // no empty space after the last point
    chart.log2_y ? y_.FinishLog() : y_.Finish();
  }

  std::string Text() const {
    return "<svg viewBox=\"0 0 " + Pixel(kWidth) + " " + Pixel(kHeight) +
           "\" role=\"img\" aria-label=\"" + Escape(chart_.title) + "\">" + Bands() + Grid() +
           Mark() + Lines() + "</svg>";
  }

 private:
  bool Drawn(double y) const {
    return !IsMissing(y) && y >= chart_.y_low && (chart_.y_high <= 0 || y <= chart_.y_high) &&
           (!chart_.log2_y || y > 0);
  }
  double Scaled(double y) const { return chart_.log2_y ? std::log2(y) : y; }
  double X(double x) const { return kLeft + (kWidth - kLeft - kRight) * x_.Share(x); }
  double Y(double y) const {
    return kHeight - kBottom - (kHeight - kBottom - kTop) * y_.Share(Scaled(y));
  }

  std::string Bands() const {
    std::string svg;
    double label_end = 0;
    for (const ChartBand& band : chart_.bands) {
      if (band.begin >= x_.high) continue;
      const double left = X(band.begin), right = X(std::min(band.end, x_.high));
      svg += "<rect class=\"band\" x=\"" + Pixel(left) + "\" y=\"" + Pixel(kTop) + "\" width=\"" +
             Pixel(std::max(1.0, right - left)) + "\" height=\"" + Pixel(kHeight - kTop - kBottom) +
             "\"><title>" + Escape(band.label) + "</title></rect>";
      // A label only where it does not run into the one before.
      if (left < label_end || band.label.empty()) continue;
      svg += "<text class=\"event\" x=\"" + Pixel(left) + "\" y=\"" + Pixel(kTop - 6) + "\">" +
             Escape(band.label) + "</text>";
      label_end = left + 8.0 * static_cast<double>(band.label.size());
    }
    return svg;
  }

  std::string Grid() const {
    std::string svg;
    for (const double tick : y_.ticks) {
      const double value = chart_.log2_y ? std::exp2(tick) : tick;
      const std::string y = Pixel(Y(value));
      svg += "<line class=\"grid\" x1=\"" + Pixel(kLeft) + "\" x2=\"" + Pixel(kWidth - kRight) +
             "\" y1=\"" + y + "\" y2=\"" + y + "\"/><text class=\"tick\" x=\"" + Pixel(kLeft - 7) +
             "\" y=\"" + Pixel(Y(value) + 4) + "\" text-anchor=\"end\">" + Short(value) + "</text>";
    }
    for (const double tick : x_.ticks) {
      if (tick > x_.high) continue;
      svg += "<text class=\"tick\" x=\"" + Pixel(X(tick)) + "\" y=\"" + Pixel(kHeight - 12) +
             "\" text-anchor=\"middle\">" + Short(tick) + " s</text>";
    }
    return svg + "<text class=\"axis\" x=\"" + Pixel(2) + "\" y=\"" + Pixel(13) + "\">" +
           Escape(chart_.y_name) + "</text>";
  }

  std::string Mark() const {
    if (!(chart_.mark > 0)) return {};
    const std::string y = Pixel(Y(chart_.mark));
    return "<line class=\"mark\" x1=\"" + Pixel(kLeft) + "\" x2=\"" + Pixel(kWidth - kRight) +
           "\" y1=\"" + y + "\" y2=\"" + y + "\"/><text class=\"event\" x=\"" +
           Pixel(kWidth - kRight) + "\" y=\"" + Pixel(Y(chart_.mark) - 5) +
           "\" text-anchor=\"end\">" + Escape(chart_.mark_name) + "</text>";
  }

  std::string Lines() const {
    std::string svg;
    for (const ChartLine& line : chart_.lines) {
      std::string points;
      const std::size_t stride = 1 + line.x.size() / kMostPoints;
      for (std::size_t i = 0; i < line.x.size(); ++i) {
        if (i % stride != 0 && i + 1 != line.x.size()) continue;
        if (!Drawn(line.y[i])) continue;
        points += (points.empty() ? "" : " ") + Pixel(X(line.x[i])) + "," + Pixel(Y(line.y[i]));
      }
      svg += "<polyline class=\"line c" + std::to_string(line.color % 8) + "\" points=\"" + points +
             "\"><title>" + Escape(line.name) + "</title></polyline>";
    }
    return svg;
  }

  const Chart& chart_;
  Axis x_, y_;
};

}  // namespace

std::string Escape(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string Short(double value) {
  char text[32];
  if (std::abs(value) >= 1000 && std::abs(value) < 1e7) {
    std::snprintf(text, sizeof text, "%.0f", value);
  } else {
    std::snprintf(text, sizeof text, "%.4g", std::abs(value) < 1e-12 ? 0.0 : value);
  }
  return text;
}

std::string RenderChart(const Chart& chart) {
  std::string legend;
  for (const ChartLine& line : chart.lines)
    legend += "<span><i class=\"c" + std::to_string(line.color % 8) + "\"></i>" +
              Escape(line.name) + "</span>";
  return "<figure><figcaption>" + Escape(chart.title) + "</figcaption>" + Drawing(chart).Text() +
         "<p class=\"legend\">" + legend + "</p></figure>";
}

}  // namespace dynamix
