// Text and numbers on pages. Pure.
#pragma once

#include <string>

namespace dynamix {

// Text for HTML.
std::string Escape(const std::string& text);
// At most four significant digits, without exponent where people expect none.
std::string Short(double value);

}  // namespace dynamix
