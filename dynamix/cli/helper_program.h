// The programs behind `dynamix` that users do not start themselves: dynamix-train,
// dynamix-torchscript. They lie beside it in a build tree, and in PREFIX/libexec/dynamix where it is
// installed, whatever the prefix is and however PATH led to it.
#pragma once

#include <string>

namespace dynamix {

// The path of helper `name`; where it would be when it is not there.
std::string HelperProgram(const std::string& name);

}  // namespace dynamix
