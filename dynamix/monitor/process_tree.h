// The processes of a target, and the sockets they hold. Any thread; reads /proc.
//
// A process that ends or hides between two looks is left out, without an error: the caller sees
// fewer processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "dynamix/monitor/network_source.h"

namespace dynamix {

// The process and all its descendants that live, or the processes of the cgroup.
std::vector<int> ProcessesOf(const Target& target);

// Inodes of the sockets these processes hold. Nothing when one does not let us look (another
// user's): a part would pass for the whole.
std::optional<std::unordered_set<std::uint64_t>> SocketInodes(const std::vector<int>& processes);

// /proc/PID/task/TID of each thread.
std::vector<std::string> ThreadFolders(int pid);

// One process of the target, for what exists once per namespace; 0 when there is none.
int AnyProcess(const Target& target);

}  // namespace dynamix
