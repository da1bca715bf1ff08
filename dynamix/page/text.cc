#include "dynamix/page/text.h"

#include <cmath>
#include <cstdio>

namespace dynamix {

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

}  // namespace dynamix
