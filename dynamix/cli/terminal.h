// What the terminal behind a descriptor can show.
#pragma once

#include <cstddef>
#include <string>

namespace dynamix {

// Columns; 0 when it is no terminal, so that files and pipes get whole lines.
std::size_t TerminalWidth(int descriptor);

// A terminal whose user has not set NO_COLOR (no-color.org).
bool ShowsColour(int descriptor);

enum class Colour { kRed = 31, kGreen = 32, kYellow = 33, kBold = 1 };
// `text`, coloured if the terminal shows it.
std::string Coloured(const std::string& text, Colour colour, int descriptor);

// Breaks at blanks, so that no line is longer than `width` unless a word is.
std::string Wrapped(const std::string& text, std::size_t width);

}  // namespace dynamix
