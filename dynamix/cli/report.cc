#include "dynamix/cli/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "dynamix/cli/table.h"
#include "dynamix/core/report.h"

namespace dynamix {
namespace {

constexpr double kWidth = 720, kHeight = 260, kLeft = 56, kBottom = 34, kTop = 10, kRight = 12;
constexpr std::array<const char*, 8> kColors = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                                "#66ccee", "#aa3377", "#bbbbbb", "#997700"};

struct Line {
  std::string name;
  std::vector<double> x, y;
};

std::string Escape(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// Axis ranges over the finite points of all lines.
struct Axes {
  double x_low = 0, x_high = 0, y_low = HUGE_VAL, y_high = -HUGE_VAL;

  explicit Axes(const std::vector<Line>& lines) {
    for (const Line& line : lines) {
      for (std::size_t i = 0; i < line.x.size(); ++i) {
        if (IsMissing(line.y[i])) continue;
        x_high = std::max(x_high, line.x[i]);
        y_low = std::min(y_low, line.y[i]);
        y_high = std::max(y_high, line.y[i]);
      }
    }
    if (!(y_high > y_low)) {
      y_low = std::isfinite(y_low) ? y_low - 1 : 0;
      y_high = y_low + 2;
    }
    if (x_high <= 0) x_high = 1;
  }
  double X(double x) const {
    return kLeft + (kWidth - kLeft - kRight) * (x - x_low) / (x_high - x_low);
  }
  double Y(double y) const {
    return kHeight - kBottom - (kHeight - kBottom - kTop) * (y - y_low) / (y_high - y_low);
  }
};

std::string Grid(const Axes& axes, const std::string& y_name) {
  std::string svg;
  for (int i = 0; i <= 4; ++i) {
    const double y = axes.y_low + (axes.y_high - axes.y_low) * i / 4;
    const double x = axes.x_low + (axes.x_high - axes.x_low) * i / 4;
    const std::string at = Number(axes.Y(y)), across = Number(axes.X(x));
    svg += "<line class=grid x1=" + Number(kLeft) + " x2=" + Number(kWidth - kRight) + " y1=" + at +
           " y2=" + at + " />";
    svg += "<text x=" + Number(kLeft - 6) + " y=" + Number(axes.Y(y) + 4) + " text-anchor=end>" +
           Number(y) + "</text>";
    svg += "<text x=" + across + " y=" + Number(kHeight - 14) + " text-anchor=middle>" + Number(x) +
           " s</text>";
  }
  return svg + "<text x=" + Number(kLeft + 4) + " y=" + Number(kTop + 8) + ">" + Escape(y_name) +
         "</text>";
}

std::string Chart(const std::string& title, const std::string& y_name,
                  const std::vector<Line>& lines) {
  const Axes axes(lines);
  std::string svg = "<h2>" + Escape(title) + "</h2><svg viewBox='0 0 " + Number(kWidth) + " " +
                    Number(kHeight) + "' role=img><title>" + Escape(title) + "</title>" +
                    Grid(axes, y_name);
  std::string legend = "<p class=legend>";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string color = kColors[i % kColors.size()];
    std::string points;
    for (std::size_t p = 0; p < lines[i].x.size(); ++p) {
      if (IsMissing(lines[i].y[p])) continue;
      points += Number(axes.X(lines[i].x[p])) + "," + Number(axes.Y(lines[i].y[p])) + " ";
    }
    svg += "<polyline points='" + points + "' stroke='" + color + "' />";
    legend +=
        "<span style='color:" + color + "'>&#9632;</span> " + Escape(lines[i].name) + " &nbsp; ";
  }
  return svg + "</svg>" + legend + "</p>";
}

std::vector<double> GlobalBatches(const Trace& trace) {
  std::vector<double> sums;
  for (const std::vector<int>& window : trace.batches) {
    double sum = 0;
    for (int batch : window) sum += batch;
    sums.push_back(sum);
  }
  return sums;
}

std::string BatchChart(const Trace& trace) {
  std::vector<Line> lines;
  const std::size_t workers = trace.batches.empty() ? 0 : trace.batches.front().size();
  for (std::size_t w = 0; w < std::min<std::size_t>(workers, 8); ++w) {
    Line line{"worker " + std::to_string(w), trace.seconds, {}};
    for (const std::vector<int>& window : trace.batches) line.y.push_back(window[w]);
    lines.push_back(std::move(line));
  }
  return Chart("Local batches under " + trace.policy, "samples", lines);
}

constexpr const char* kHead = R"(<!doctype html><html lang=en><meta charset=utf-8>
<meta name=viewport content="width=device-width,initial-scale=1">
<style>
:root{color-scheme:light dark;--ink:#222;--paper:#fff;--faint:#ddd}
@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#181a1b;--faint:#3a3d3f}}
body{font:16px/1.5 system-ui,sans-serif;max-width:760px;margin:2rem auto;padding:0 1rem;color:var(--ink);background:var(--paper)}
svg{width:100%;height:auto}svg text{font-size:11px;fill:var(--ink)}
svg polyline{fill:none;stroke-width:1.8}.grid{stroke:var(--faint)}
pre{overflow-x:auto;font-size:13px}.legend{margin-top:0;font-size:14px}h2{font-size:1.1rem;margin-bottom:.3rem}
</style>
)";

}  // namespace

std::string RenderReport(const ReportPage& page) {
  std::string html = kHead;
  html += "<title>" + Escape(page.title) + "</title><h1>" + Escape(page.title) + "</h1><p>" +
          Escape(page.description) + "</p><pre>" + Escape(page.table) + "</pre>";
  std::vector<Line> accuracy, batches;
  for (const Trace& trace : page.traces) {
    accuracy.push_back({trace.policy, trace.seconds, trace.accuracy});
    Line line{trace.policy, trace.seconds, GlobalBatches(trace)};
    for (double& y : line.y) y = std::log2(y);
    batches.push_back(std::move(line));
  }
  html += Chart("Held-out accuracy over time", "accuracy", accuracy);
  html += Chart("Global batch over time", "log2 of samples", batches);
  for (const Trace& trace : page.traces)
    if (!trace.policy.starts_with("static")) html += BatchChart(trace);
  return html + "</html>\n";
}

}  // namespace dynamix
