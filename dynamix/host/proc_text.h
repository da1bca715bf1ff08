// Parsers of the kernel's text files. Pure functions: text in, values out; any thread.
//
// They take what the kernel writes and give nothing on anything else; a hostile or truncated text
// cannot make them fail otherwise (proc_text_fuzz.cc). Formats: proc(5), cgroups(7), and the
// kernel's Documentation/accounting/psi.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dynamix {

// The number after a key that starts a line: "usage_usec 12", "MemTotal:  12 kB" (key
// "MemTotal:"). Units are the caller's.
std::optional<std::uint64_t> NumberAfter(std::string_view text, std::string_view key);

// The number a file consists of ("123\n"); nothing for "max".
std::optional<std::uint64_t> WholeNumber(std::string_view text);

// /proc/PID/stat.
struct ProcessStat {
  int parent = 0;
  std::uint64_t major_faults = 0;           // of the process and its waited-for children
  std::uint64_t waited_children_ticks = 0;  // CPU time of children that ended, clock ticks
};
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

// Seconds since boot that some task was stalled: "some avg10=... total=MICROSECONDS".
std::optional<double> ParsePressureSeconds(std::string_view text);

// /proc/PID/net/dev.
struct InterfaceBytes {
  std::string name;
  std::uint64_t received = 0, sent = 0;
};
std::vector<InterfaceBytes> ParseInterfaces(std::string_view text);

// The Tcp lines of /proc/PID/net/snmp.
struct SegmentCounts {
  std::uint64_t sent = 0;  // without retransmissions
  std::uint64_t retransmitted = 0;
};
std::optional<SegmentCounts> ParseTcpSegments(std::string_view text);

// /proc/PID/cgroup; version 2 has no controllers.
struct CgroupLine {
  std::string controllers;  // "cpu,cpuacct"; empty for version 2
  std::string path;         // starts with '/'
};
std::vector<CgroupLine> ParseProcessCgroups(std::string_view text);

// /proc/mounts, escapes resolved.
struct Mount {
  std::string point, type, options;
};
std::vector<Mount> ParseMounts(std::string_view text);

// cgroup.procs: process ids, one per line.
std::vector<int> ParseProcessList(std::string_view text);

// What a link in /proc/PID/fd points to: "socket:[12345]".
std::optional<std::uint64_t> ParseSocketInode(std::string_view link);

}  // namespace dynamix
