#include "dynamix/host/proc_text.h"

#include <charconv>

namespace dynamix {
namespace {

constexpr std::string_view kBlanks = " \t";

template <typename Number>
std::optional<Number> ToNumber(std::string_view word) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// Cuts the first line off `text`.
std::string_view TakeLine(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// Cuts the first word off `line`; empty when there is none.
std::string_view TakeWord(std::string_view& line) {
  const std::size_t start = line.find_first_not_of(kBlanks);
  if (start == std::string_view::npos) {
    line = {};
    return {};
  }
  line.remove_prefix(start);
  const std::size_t end = line.find_first_of(kBlanks);
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(word.size());
  return word;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line))
    words.push_back(word);
  return words;
}

// "\040" is a blank in /proc/mounts.
std::string Unescape(std::string_view word) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto digit = [&](std::size_t k) {
      return i + k < word.size() && word[i + k] >= '0' && word[i + k] <= '7' ? word[i + k] - '0'
                                                                             : -1;
    };
    if (word[i] == '\\' && digit(1) >= 0 && digit(2) >= 0 && digit(3) >= 0) {
      out.push_back(static_cast<char>((digit(1) * 64 + digit(2) * 8 + digit(3)) & 0xff));
      i += 3;
    } else {
      out.push_back(word[i]);
    }
  }
  return out;
}

}  // namespace

std::optional<std::uint64_t> NumberAfter(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    if (TakeWord(line) == key) return ToNumber<std::uint64_t>(TakeWord(line));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> WholeNumber(std::string_view text) {
  std::string_view line = TakeLine(text);
  return ToNumber<std::uint64_t>(TakeWord(line));
}

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  // The command in parentheses may hold anything, so count fields from the last ')'.
  const std::size_t command_end = text.rfind(')');
  if (command_end == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(command_end + 1);
  const std::vector<std::string_view> words = Words(TakeLine(rest));
  constexpr std::size_t kFirst = 3;  // proc(5) numbers the field after the command 3
  if (words.size() < 18) return std::nullopt;
  const auto field = [&](std::size_t number) {
    return ToNumber<std::int64_t>(words[number - kFirst]);
  };
  const auto parent = field(4), faults = field(12), child_faults = field(13);
  const auto child_user = field(16), child_system = field(17);
  if (!parent || !faults || !child_faults || !child_user || !child_system) return std::nullopt;
  ProcessStat stat;
  stat.parent = static_cast<int>(*parent);
  stat.major_faults =
      static_cast<std::uint64_t>(*faults) + static_cast<std::uint64_t>(*child_faults);
  stat.waited_children_ticks =
      static_cast<std::uint64_t>(*child_user) + static_cast<std::uint64_t>(*child_system);
  return stat;
}

std::optional<double> ParsePressureSeconds(std::string_view text) {
  while (!text.empty()) {
    const std::vector<std::string_view> words = Words(TakeLine(text));
    if (words.empty() || words[0] != "some") continue;
    for (const std::string_view word : words) {
      if (!word.starts_with("total=")) continue;
      const auto total_us = ToNumber<std::uint64_t>(word.substr(6));
      if (total_us) return static_cast<double>(*total_us) * 1e-6;
    }
  }
  return std::nullopt;
}

std::vector<InterfaceBytes> ParseInterfaces(std::string_view text) {
  std::vector<InterfaceBytes> interfaces;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::vector<std::string_view> names = Words(line.substr(0, colon));
    const std::vector<std::string_view> numbers = Words(line.substr(colon + 1));
    if (names.size() != 1 || numbers.size() < 9) continue;
    const auto received = ToNumber<std::uint64_t>(numbers[0]);
    const auto sent = ToNumber<std::uint64_t>(numbers[8]);
    if (received && sent) interfaces.push_back({std::string(names[0]), *received, *sent});
  }
  return interfaces;
}

std::optional<SegmentCounts> ParseTcpSegments(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const std::vector<std::string_view> words = Words(TakeLine(text));
    if (words.empty() || words[0] != "Tcp:") continue;
    if (names.empty()) {
      names = words;
      continue;
    }
    std::optional<std::uint64_t> sent, retransmitted;
    for (std::size_t i = 1; i < words.size() && i < names.size(); ++i) {
      if (names[i] == "OutSegs") sent = ToNumber<std::uint64_t>(words[i]);
      if (names[i] == "RetransSegs") retransmitted = ToNumber<std::uint64_t>(words[i]);
    }
    if (sent && retransmitted) return SegmentCounts{*sent, *retransmitted};
    return std::nullopt;
  }
  return std::nullopt;
}

std::vector<CgroupLine> ParseProcessCgroups(std::string_view text) {
  std::vector<CgroupLine> lines;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    const std::size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos || line.substr(second + 1, 1) != "/") continue;
    lines.push_back({std::string(line.substr(first + 1, second - first - 1)),
                     std::string(line.substr(second + 1))});
  }
  return lines;
}

std::vector<Mount> ParseMounts(std::string_view text) {
  std::vector<Mount> mounts;
  while (!text.empty()) {
    const std::vector<std::string_view> words = Words(TakeLine(text));
    if (words.size() >= 4)
      mounts.push_back({Unescape(words[1]), std::string(words[2]), std::string(words[3])});
  }
  return mounts;
}

std::vector<int> ParseProcessList(std::string_view text) {
  std::vector<int> processes;
  while (!text.empty()) {
    const auto process = ToNumber<int>(TakeLine(text));
    if (process && *process > 0) processes.push_back(*process);
  }
  return processes;
}

std::optional<std::uint64_t> ParseSocketInode(std::string_view link) {
  constexpr std::string_view kPrefix = "socket:[";
  if (!link.starts_with(kPrefix) || !link.ends_with("]")) return std::nullopt;
  link.remove_prefix(kPrefix.size());
  link.remove_suffix(1);
  return ToNumber<std::uint64_t>(link);
}

}  // namespace dynamix
