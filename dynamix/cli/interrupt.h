// ctrl-C, SIGTERM and SIGHUP (the terminal was closed) as a flag: long work looks at it, saves, and
// throws Interrupted (exit code 130).
#pragma once

#include <exception>

namespace dynamix {

class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// Catches the signals while it lives; a second ctrl-C ends the program at once, a second SIGTERM
// does not. SIGHUP stays ignored where it was (nohup). One at a time.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  operator bool() const;  // NOLINT: reads as a flag
};

// SIGHUP as another flag, taken over from InterruptFlag: read again what can be read again. One at a
// time.
class ReloadFlag {
 public:
  ReloadFlag();
  ~ReloadFlag();
  ReloadFlag(const ReloadFlag&) = delete;
  ReloadFlag& operator=(const ReloadFlag&) = delete;
  bool Take();  // true once per signal
};

}  // namespace dynamix
