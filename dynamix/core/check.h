// DYNAMIX_CHECK(condition, "what must hold"): for our own bugs, never for bad input or a failing
// world.
//
// A failed check throws CheckFailure instead of ending the process: DYNAMIX lives inside other
// people's training jobs, and a bug of ours must not stop them. Callers at the edge of a job (the
// worker client) catch it, log it, and keep the last batch size.
#pragma once

#include <stdexcept>
#include <string>

namespace dynamix {

class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void FailCheck(const char* condition, const char* what, const char* file,
                                   int line) {
  throw CheckFailure(std::string(file) + ":" + std::to_string(line) + ": " + what + " (" +
                     condition + " is false)");
}

}  // namespace dynamix

#define DYNAMIX_CHECK(condition, what)                                            \
  do {                                                                            \
    if (!(condition)) ::dynamix::FailCheck(#condition, what, __FILE__, __LINE__); \
  } while (false)
