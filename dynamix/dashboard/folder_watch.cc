#include "dynamix/dashboard/folder_watch.h"

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "dynamix/record/rounds_follower.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

constexpr auto kPause = std::chrono::milliseconds(250);

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
    RoundsFollower rounds;
    std::string job;
    int starts = 0;  // those whose configuration was read
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
    Seen& seen =
        seen_.try_emplace(run.string(), Seen{.rounds = RoundsFollower(run / "rounds.jsonl")})
            .first->second;
    seen.rounds.ReadNew([&](const nlohmann::json& line) {
      if (seen.starts != seen.rounds.starts()) Begin(run, seen);
      dashboard_.AddRound(seen.job, line);
    });
  }

  void Begin(const fs::path& run, Seen& seen) {
    seen.starts = seen.rounds.starts();
    seen.job = fs::absolute(run).lexically_normal().filename().string();
    std::error_code none;
    if (!fs::exists(run / "config.toml", none)) return;
    try {
      dashboard_.SetConfig(seen.job, LoadRunConfig((run / "config.toml").string()));
    } catch (const std::exception&) {  // an older run's: its rounds are shown all the same
    }
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
