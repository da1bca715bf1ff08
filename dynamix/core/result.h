// Result<T>: a value, or an Error that says in one sentence what the world refused.
//
// For failures inside the loop (a file that vanished, a peer that left). The caller must look at
// it; a worker that gets an Error keeps its last batch size. Not for bugs (DYNAMIX_CHECK) or bad
// input (InputError).
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "dynamix/core/check.h"

namespace dynamix {

struct Error {
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::move(value)) {}  // NOLINT: implicit, so that `return value;` reads well
  Result(Error error) : state_(std::move(error)) {}  // NOLINT

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  const T& value() const& {
    DYNAMIX_CHECK(ok(), "value() of a failed Result");
    return std::get<T>(state_);
  }
  T&& value() && {
    DYNAMIX_CHECK(ok(), "value() of a failed Result");
    return std::get<T>(std::move(state_));
  }
  const std::string& error() const {
    DYNAMIX_CHECK(!ok(), "error() of a good Result");
    return std::get<Error>(state_).message;
  }

 private:
  std::variant<T, Error> state_;
};

// The value of an operation that only succeeds or fails.
struct Nothing {};
using Status = Result<Nothing>;

}  // namespace dynamix
