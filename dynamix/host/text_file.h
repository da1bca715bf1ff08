// Small files of the kernel (/proc, /sys/fs/cgroup), read and written whole. Any thread.
//
// Reading gives nothing when the file is absent, unreadable or past a megabyte; writing gives an
// Error with the path and the kernel's reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "dynamix/core/result.h"

namespace dynamix {

std::optional<std::string> ReadTextFile(const std::string& path);
Status WriteTextFile(const std::string& path, std::string_view text);

// "what: reason of errno".
Error SystemError(std::string what, int error_number);

}  // namespace dynamix
