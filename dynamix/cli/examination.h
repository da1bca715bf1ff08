// What dynamix doctor looks at: each finding is one thing that jobs use, whether it works here, and
// what mends it. Everything is tried, not guessed: a program is loaded, a namespace is made, a port
// is bound; nothing stays.
#pragma once

#include <string>
#include <vector>

namespace dynamix {

struct Finding {
  // kLess: jobs run without it, with less. kBad: some command fails.
  enum class State { kGood, kLess, kBad };

  std::string subject;
  State state = State::kGood;
  std::string text;    // what was found
  std::string remedy;  // a command, or a sentence; empty when there is nothing to mend
};

struct ExaminationOptions {
  std::string address = "127.0.0.1:7040";  // an arbitrator's
  std::string certificate;                 // PEM file; empty: none is examined
};

std::vector<Finding> Examine(const ExaminationOptions& options);

}  // namespace dynamix
