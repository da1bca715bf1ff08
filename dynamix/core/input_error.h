// Bad input at the door: a flag, a file, an option. Thrown once, before any work starts; the
// message names the field, the value and what is allowed, so that a user can mend it without
// reading code.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace dynamix {

class InputError : public std::invalid_argument {
 public:
  explicit InputError(const std::string& message) : std::invalid_argument(message) {}

  template <typename Value>
  static InputError OutOfRange(std::string_view field, const Value& value,
                               std::string_view allowed) {
    std::ostringstream out;
    out << field << " = " << value << " is not allowed: expected " << allowed;
    return InputError(out.str());
  }
};

// Throws InputError unless low <= value <= high (NaN is refused).
template <typename Value>
void RequireInRange(std::string_view field, Value value, Value low, Value high) {
  if (value >= low && value <= high) return;
  std::ostringstream allowed;
  allowed << "a value in [" << low << ", " << high << "]";
  throw InputError::OutOfRange(field, value, allowed.str());
}

}  // namespace dynamix
