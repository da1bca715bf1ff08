// The epoch of an arbitrator: a number above that of every arbitrator that ran on its folder before,
// by which workers tell a new one from one that was replaced. One process at a time per folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dynamix {

// The folder keeps it before anybody hears of it, so a clock that was set back does no harm. Without
// a folder (empty) the clock must do. Throws std::runtime_error when the folder cannot be written.
std::uint64_t NextEpoch(const std::string& folder, std::chrono::system_clock::time_point now);

}  // namespace dynamix
