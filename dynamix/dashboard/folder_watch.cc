#include "dynamix/dashboard/folder_watch.h"

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

namespace dynamix {
namespace {

namespace fs = std::filesystem;

constexpr auto kPause = std::chrono::milliseconds(250);
constexpr std::size_t kMostAtOnce = std::size_t{16} << 20;  // bytes of one file per turn

}  // namespace

class FolderWatch::Implementation {
 public:
  Implementation(Dashboard& dashboard, fs::path folder)
      : dashboard_(dashboard), folder_(std::move(folder)), thread_([this] { Watch(); }) {}

  ~Implementation() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    end_.notify_all();
    thread_.join();
  }

 private:
  struct Seen {
    std::string job;
    std::uint64_t read = 0;  // bytes, whole lines
    bool configured = false;
    int restarts = 0;
  };

  void Watch() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      lock.unlock();
      Look();
      lock.lock();
      end_.wait_for(lock, kPause, [this] { return ended_; });
    }
  }

  void Look() {
    std::error_code gone;
    if (fs::exists(folder_ / "rounds.jsonl", gone)) Read(folder_);
    for (const auto& entry : fs::directory_iterator(folder_, gone))
      if (fs::exists(entry.path() / "rounds.jsonl", gone)) Read(entry.path());
  }

  void Read(const fs::path& run) {
    Seen& seen = seen_[run.string()];
    std::error_code gone;
    const std::uint64_t size = fs::file_size(run / "rounds.jsonl", gone);
    if (gone || size == seen.read) return;
    if (seen.job.empty() || size < seen.read) {  // it starts anew
      const int restarts = seen.job.empty() ? 0 : seen.restarts + 1;
      const std::string name = fs::absolute(run).lexically_normal().filename().string();
      seen = {.job = name + (restarts > 0 ? " (" + std::to_string(restarts + 1) + ")" : ""),
              .restarts = restarts};
    }
    if (!seen.configured) SetConfig(run, seen);
    AddLines(run / "rounds.jsonl", seen);
  }

  void SetConfig(const fs::path& run, Seen& seen) {
    seen.configured = true;
    std::error_code none;
    if (!fs::exists(run / "config.toml", none)) return;
    try {
      dashboard_.SetConfig(seen.job, LoadRunConfig((run / "config.toml").string()));
    } catch (const std::exception&) {  // an older run's: its rounds are shown all the same
    }
  }

  // Whole lines only: the last one may be in the making.
  void AddLines(const fs::path& path, Seen& seen) {
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(seen.read));
    std::string text(kMostAtOnce, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto line = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                              text.begin() + static_cast<std::ptrdiff_t>(end),
                                              nullptr, /*allow_exceptions=*/false);
      if (line.is_object()) dashboard_.AddRound(seen.job, line);
    }
    seen.read += begin;
  }

  Dashboard& dashboard_;
  const fs::path folder_;
  std::map<std::string, Seen> seen_;  // by folder; the thread's alone
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;  // last: it reads what is above
};

FolderWatch::FolderWatch(Dashboard& dashboard, fs::path folder)
    : implementation_(std::make_unique<Implementation>(dashboard, std::move(folder))) {}

FolderWatch::~FolderWatch() = default;

}  // namespace dynamix
