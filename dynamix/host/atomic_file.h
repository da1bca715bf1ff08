// Whole files, read at once and replaced atomically.
//
// Functions touch only the named files; do not write one path from two threads. The world failing
// is an Error that names the file and the system's reason.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "dynamix/core/result.h"

namespace dynamix {

inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

// A regular file of at most `most` bytes. Never waits: a pipe or a device is an Error.
Result<std::string> ReadBytes(const std::string& path, std::size_t most = kMaxFileBytes);

// Replaces `path` by `bytes` or leaves it alone: written beside it, synced, renamed, folder synced.
// `path` exists at every moment once it has existed. A device there, or where a link leads, is an
// Error: /dev/null would be a file for the whole machine. What was there becomes
// PreviousGeneration(path) if `keep(path)` says so; a damaged file must not replace a good previous
// generation. An empty `keep` keeps nothing.
using KeepFile = std::function<bool(const std::string& path)>;
Status WriteBytes(const std::string& path, std::string_view bytes, const KeepFile& keep = {});
std::string PreviousGeneration(const std::string& path);

}  // namespace dynamix
