// SHA-256, by which files are told apart and found damaged. Pure; never fails.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace dynamix {

// Of the parts one after another: 64 lower-case hexadecimal digits.
std::string Sha256(std::initializer_list<std::string_view> parts);

}  // namespace dynamix
