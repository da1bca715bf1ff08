#include "dynamix/monitor/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <unordered_map>

#include "dynamix/host/cgroup.h"
#include "dynamix/host/proc_text.h"
#include "dynamix/host/text_file.h"

namespace dynamix {
namespace {

// Parent to children, of every process we may see.
std::unordered_multimap<int, int> Children() {
  std::unordered_multimap<int, int> children;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return children;
  while (const dirent* entry = readdir(proc)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    const auto text = ReadTextFile(std::string("/proc/") + entry->d_name + "/stat");
    const auto stat = text ? ParseProcessStat(*text) : std::nullopt;
    if (stat) children.emplace(stat->parent, pid);
  }
  closedir(proc);
  return children;
}

}  // namespace

std::vector<int> ProcessesOf(const Target& target) {
  if (!target.cgroup.empty()) return ProcessesIn(target.cgroup);
  const int root = target.pid > 0 ? target.pid : getpid();
  const std::unordered_multimap<int, int> children = Children();
  std::vector<int> tree = {root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [first, last] = children.equal_range(tree[i]);
    for (auto child = first; child != last; ++child) tree.push_back(child->second);
  }
  return tree;
}

std::optional<std::unordered_set<std::uint64_t>> SocketInodes(const std::vector<int>& processes) {
  std::unordered_set<std::uint64_t> inodes;
  for (const int pid : processes) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd/";
    DIR* files = opendir(folder.c_str());
    if (files == nullptr && errno == EACCES) return std::nullopt;
    if (files == nullptr) continue;
    while (const dirent* entry = readdir(files)) {
      char link[64];
      const ssize_t length = readlinkat(dirfd(files), entry->d_name, link, sizeof link);
      if (length <= 0) continue;
      const auto inode = ParseSocketInode({link, static_cast<std::size_t>(length)});
      if (inode) inodes.insert(*inode);
    }
    closedir(files);
  }
  return inodes;
}

std::vector<std::string> ThreadFolders(int pid) {
  std::vector<std::string> folders;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task/";
  DIR* threads = opendir(folder.c_str());
  if (threads == nullptr) return folders;
  while (const dirent* entry = readdir(threads))
    if (entry->d_name[0] != '.') folders.push_back(folder + entry->d_name);
  closedir(threads);
  return folders;
}

int AnyProcess(const Target& target) {
  if (target.cgroup.empty()) return target.pid > 0 ? target.pid : getpid();
  const std::vector<int> processes = ProcessesIn(target.cgroup);
  return processes.empty() ? 0 : processes.front();
}

}  // namespace dynamix
