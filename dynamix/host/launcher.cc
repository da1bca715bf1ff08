#include "dynamix/host/launcher.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "dynamix/core/input_error.h"
#include "dynamix/host/file_descriptor.h"
#include "dynamix/host/launch_folder.h"
#include "dynamix/host/output.h"

namespace dynamix {
namespace {

using Clock = std::chrono::steady_clock;

// A line that grows past this is passed on in pieces: a rank that never ends one costs no memory.
constexpr std::size_t kLongestLine = 65536;
// Words that may wait for a slow reader. With more, the ranks wait too, until they are asked to end.
constexpr std::size_t kMostWaiting = 1 << 20;
constexpr int kAskAwayEveryMs = 50;
// How long a launcher that was asked to end waits for its reader after the last rank.
constexpr auto kFarewell = std::chrono::milliseconds(300);

[[noreturn]] void Fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Where words of the ranks go, and those that wait. Never written to unless it is ready: whoever
// reads may have stopped, and signals are to be served meanwhile.
struct Output {
  int file = -1;
  std::string waiting;
};

// One stream of one rank: its unfinished line.
struct Stream {
  int pipe = -1;  // -1 once it has ended
  Output* out = nullptr;
  std::string line;
};

struct Rank {
  pid_t pid = -1;  // -1 once it has been waited for
  std::array<Stream, 2> streams;
  int restarts = 0;
  bool away = false, leaving = false;         // leaving: killed for that, and not waited for yet
  std::optional<Clock::time_point> start_at;  // it is lost, and to be started again
};

int FreePort() {
  const int socket_file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool good = socket_file >= 0 &&
                    bind(socket_file, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                    getsockname(socket_file, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (socket_file >= 0) close(socket_file);
  if (!good) Fail("no free port");
  return ntohs(address.sin_port);
}

// Rank 0 will listen there: better to know now than after a minute of ranks that wait.
void RequireFreePort(int port) {
  const FileDescriptor file(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (bind(file.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0) return;
  if (errno != EADDRINUSE && errno != EACCES) return;  // no IPv6: the ranks will see
  throw InputError::OutOfRange(
      "port", port,
      "a port that is free (" + std::generic_category().message(errno) + "), or 0 for any that is");
}

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options) : options_(options), ranks_(options.ranks) {
    // Whoever read the output may leave; the ranks go on.
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &old_pipe_);
    sigprocmask(SIG_SETMASK, nullptr, &old_mask_);
  }
  ~Launcher() {
    Signal(SIGKILL);
    for (Rank& rank : ranks_)
      if (rank.pid > 0) waitpid(rank.pid, nullptr, 0);
    if (signals_ >= 0) close(signals_);
    sigaction(SIGPIPE, &old_pipe_, nullptr);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  }

  int Run() {
    CatchSignals();
    port_ = options_.port > 0 ? options_.port : FreePort();
    for (int rank = 0; rank < options_.ranks; ++rank) Start(rank);
    while (Running() || Reading() || Waiting()) {
      Step();
      FollowAbsences();
      Restart();
    }
    return code_ != 0 || done_ ? code_ : lost_code_;
  }

 private:
  void CatchSignals() {
    sigset_t mask;
    sigemptyset(&mask);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD})
      sigaddset(&mask, signal);
    if (sigprocmask(SIG_BLOCK, &mask, nullptr) != 0) Fail("sigprocmask");
    signals_ = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) Fail("signalfd");
  }

  void Start(int rank) {
    std::array<std::array<int, 2>, 2> pipes;
    for (auto& ends : pipes)
      if (pipe2(ends.data(), O_CLOEXEC) != 0) Fail("pipe");
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) Fail("fork");
    if (pid == 0) Become(rank, parent, pipes);
    setpgid(pid, pid);  // as the rank does itself: a signal may come before it gets there
    ranks_[rank].pid = pid;
    for (int i = 0; i < 2; ++i) {
      close(pipes[i][1]);
      ranks_[rank].streams[i] = {pipes[i][0], &outputs_[i], {}};
    }
  }

  [[noreturn]] void Become(int rank, pid_t parent, const std::array<std::array<int, 2>, 2>& pipes) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the launcher died in between
    setpgid(0, 0);
    sigaction(SIGPIPE, &old_pipe_, nullptr);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    // In a process group of its own a rank that reads the terminal would be stopped, for ever.
    if (isatty(STDIN_FILENO) != 0) dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(pipes[0][1], STDOUT_FILENO);
    dup2(pipes[1][1], STDERR_FILENO);
    const std::string size = std::to_string(options_.ranks), own = std::to_string(rank);
    const std::string threads = std::to_string(options_.threads);
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
             {"RANK", own},
             {"WORLD_SIZE", size},
             {"LOCAL_RANK", own},
             {"LOCAL_WORLD_SIZE", size},
             {"MASTER_ADDR", options_.address},
             {"MASTER_PORT", std::to_string(port_)},
             {"DYNAMIX_RESTARTS", std::to_string(ranks_[rank].restarts)},
             {"OMP_NUM_THREADS", threads},
             {"OPENBLAS_NUM_THREADS", threads}})
      setenv(name, value.c_str(), 1);
    if (!folder_.path().empty()) setenv("DYNAMIX_STORE", (folder_.path() + "/store").c_str(), 1);
    for (const auto& [name, value] : options_.environment) setenv(name.c_str(), value.c_str(), 1);
    if (options_.enter && !options_.enter(rank)) {
      std::fprintf(stderr, "rank %d cannot enter its cgroup or network: %s\n", rank,
                   std::generic_category().message(errno).c_str());
      _exit(126);
    }
    std::vector<char*> arguments;
    for (const std::string& argument : options_.command)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    const int problem = errno;
    const bool here = std::strchr(arguments[0], '/') == nullptr && access(arguments[0], F_OK) == 0;
    std::fprintf(stderr, "cannot start %s: %s%s\n", arguments[0],
                 std::generic_category().message(problem).c_str(),
                 here ? " in PATH; for the file here, say its interpreter first, or ./" : "");
    _exit(127);
  }

  bool Running() const {
    for (const Rank& rank : ranks_)
      if (rank.pid > 0) return true;
    return false;
  }
  // "rank 2", "ranks 0, 1 and 14 more".
  std::string RunningText() const {
    constexpr int kNamed = 8;
    std::string text;
    int count = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (ranks_[rank].pid > 0 && count++ < kNamed)
        text += (text.empty() ? "" : ", ") + std::to_string(rank);
    if (count > kNamed) text += " and " + std::to_string(count - kNamed) + " more";
    return (count == 1 ? "rank " : "ranks ") + text;
  }
  bool Reading() const {
    for (const Rank& rank : ranks_)
      for (const Stream& stream : rank.streams)
        if (stream.pipe >= 0) return true;
    return false;
  }

  bool Waiting() const {
    return std::any_of(outputs_.begin(), outputs_.end(),
                       [](const Output& output) { return !output.waiting.empty(); });
  }

  void Step() {
    std::vector<pollfd> files = {{signals_, POLLIN, 0}};
    std::vector<std::pair<int, Stream*>> owners = {{-1, nullptr}};
    for (int rank = 0; rank < options_.ranks; ++rank) {
      for (Stream& stream : ranks_[rank].streams) {
        const bool full = stream.out->waiting.size() >= kMostWaiting;
        if (stream.pipe < 0 || (full && !stopping_)) continue;
        files.push_back({stream.pipe, POLLIN, 0});
        owners.emplace_back(rank, &stream);
      }
    }
    for (const Output& output : outputs_)
      if (!output.waiting.empty()) files.push_back({output.file, POLLOUT, 0});
    const int ready = poll(files.data(), files.size(), Patience());
    for (Output& output : outputs_)
      output.waiting.erase(0, WriteWithoutWaiting(output.file, output.waiting));
    for (std::size_t i = 1; i < owners.size(); ++i)
      if (files[i].revents != 0) Forward(owners[i].first, *owners[i].second);
    ReadSignals();
    if (stopping_ && Clock::now() >= kill_at_) Signal(SIGKILL);
    if (Running()) return;
    // What a rank leaves behind may hold its pipes open for ever. What the rank said is read; what
    // they say is of no more interest.
    if (ready == 0) CloseStreams();
    if (!ended_at_) ended_at_ = Clock::now();
    if (stopping_ && Clock::now() >= *ended_at_ + kFarewell) GiveUpOutput();
  }

  // Milliseconds until something is to be done even if nothing happens; -1: never.
  int Patience() const {
    if (!Running() && !Waiting()) return 0;
    std::optional<Clock::time_point> until;
    for (const Rank& rank : ranks_)
      if (rank.start_at && (!until || *rank.start_at < *until)) until = rank.start_at;
    if (options_.away && !stopping_) return kAskAwayEveryMs;
    if (stopping_) until = Running() ? kill_at_ : ended_at_.value_or(Clock::now()) + kFarewell;
    if (!until) return -1;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(*until - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(left, 0)) + 10;
  }

  void GiveUpOutput() {
    CloseStreams();
    for (Output& output : outputs_) output.waiting.clear();
  }

  // A rank that is to end must be able to say its last words, also when nobody reads them.
  void Say(Output& output, const std::string& text) const {
    if (stopping_ && output.waiting.size() >= kMostWaiting) return;
    output.waiting += text;
  }

  void Forward(int rank, Stream& stream) {
    std::array<char, 65536> buffer;
    const ssize_t count = read(stream.pipe, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return;
    if (count > 0) stream.line.append(buffer.data(), static_cast<std::size_t>(count));
    std::string text;
    std::size_t begin = 0;
    for (std::size_t end; (end = stream.line.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      text += Prefix(rank) + stream.line.substr(begin, end - begin) + "\n";
    stream.line.erase(0, begin);
    Say(*stream.out, text);
    if (stream.line.size() >= kLongestLine) EndLine(rank, stream);
    if (count <= 0) Close(rank, stream);
  }

  void EndLine(int rank, Stream& stream) const {
    if (!stream.line.empty()) Say(*stream.out, Prefix(rank) + stream.line + "\n");
    stream.line.clear();
  }

  void Close(int rank, Stream& stream) const {
    EndLine(rank, stream);
    close(stream.pipe);
    stream.pipe = -1;
  }

  std::string Prefix(int rank) const {
    return options_.prefix ? "[" + std::to_string(rank) + "] " : "";
  }

  void CloseStreams() {
    for (int rank = 0; rank < options_.ranks; ++rank)
      for (Stream& stream : ranks_[rank].streams)
        if (stream.pipe >= 0) Close(rank, stream);
  }

  void ReadSignals() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      if (signal == SIGUSR1 || signal == SIGUSR2) {
        Tell(signal);
        continue;
      }
      if (code_ == 0) code_ = 128 + signal;
      AskToEnd(signal);
    }
    for (int rank = 0; rank < options_.ranks; ++rank) {
      int status = 0;
      if (ranks_[rank].pid > 0 && waitpid(ranks_[rank].pid, &status, WNOHANG) > 0)
        Ended(rank, status);
    }
  }

  void Ended(int rank, int status) {
    // Whatever the rank started goes with it.
    kill(-ranks_[rank].pid, SIGKILL);
    ranks_[rank].pid = -1;
    if (std::exchange(ranks_[rank].leaving, false)) return;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0) done_ = true;
    if (code == 0 || code_ != 0) return;
    const std::string what = "dynamix launch: rank " + std::to_string(rank) + " ended with " +
                             (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                                  : "exit code " + std::to_string(code));
    if (options_.elastic && !stopping_) {
      if (lost_code_ == 0) lost_code_ = code;
      if (!done_)
        Say(outputs_[1],
            what + (Running() ? PlanRestart(ranks_[rank]) : "; nobody is left") + "\n");
      return;
    }
    code_ = code;
    Say(outputs_[1], what + "; stopping the others\n");
    AskToEnd(SIGTERM);
  }

  // What is done about a lost rank.
  std::string PlanRestart(Rank& rank) const {
    if (rank.restarts >= options_.max_restarts) return "; the others go on";
    const double pause_s = std::min(60.0, options_.restart_pause_s * std::pow(2, rank.restarts));
    rank.start_at = Clock::now() + std::chrono::milliseconds(static_cast<int>(pause_s * 1000));
    char seconds[16];
    std::snprintf(seconds, sizeof seconds, "%.1f", pause_s);
    return "; the others go on, and it is started again in " + std::string(seconds) + " s";
  }

  void FollowAbsences() {
    if (!options_.away || stopping_ || done_) return;
    std::vector<bool> absent;
    for (int rank = 0; rank < options_.ranks; ++rank) absent.push_back(options_.away(rank));
    if (std::find(absent.begin(), absent.end(), false) == absent.end()) return;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      Rank& one = ranks_[rank];
      const bool away = absent[rank];
      if (away == one.away || (away && one.pid < 0)) continue;
      one.away = away;
      if (away) one.leaving = kill(-one.pid, SIGKILL) == 0;
      if (!away) one.start_at = Clock::now();
      Say(outputs_[1],
          "dynamix launch: rank " + std::to_string(rank) +
              (away ? " leaves, as its cluster says\n" : " comes back, as its cluster says\n"));
    }
  }

  // Only while somebody is there to join.
  void Restart() {
    for (int rank = 0; rank < options_.ranks; ++rank) {
      std::optional<Clock::time_point>& start_at = ranks_[rank].start_at;
      if (!start_at) continue;
      if (stopping_ || done_ || !Running()) start_at.reset();
      if (!start_at || Clock::now() < *start_at || ranks_[rank].pid > 0) continue;
      start_at.reset();
      for (Stream& stream : ranks_[rank].streams)
        if (stream.pipe >= 0) Close(rank, stream);
      ++ranks_[rank].restarts;
      Start(rank);
    }
  }

  void AskToEnd(int signal) {
    Signal(signal);
    Signal(SIGCONT);  // a rank that is stopped would not hear it
    if (stopping_) return;
    stopping_ = true;
    if (Running())
      Say(outputs_[1], "dynamix launch: waiting for " + RunningText() + " to end, for up to " +
                           std::to_string(static_cast<int>(options_.grace_s)) + " s\n");
    kill_at_ = Clock::now() + std::chrono::milliseconds(static_cast<int>(options_.grace_s * 1000));
  }

  void Signal(int signal) {
    for (const Rank& rank : ranks_)
      if (rank.pid > 0) kill(-rank.pid, signal);
  }

  // To the ranks alone: what they started need not know the signal and would end.
  void Tell(int signal) {
    for (const Rank& rank : ranks_)
      if (rank.pid > 0) kill(rank.pid, signal);
  }

  const LaunchOptions& options_;
  const LaunchFolder folder_;  // of the file in which the ranks find each other
  std::array<Output, 2> outputs_{{{STDOUT_FILENO, {}}, {STDERR_FILENO, {}}}};
  std::vector<Rank> ranks_;
  sigset_t old_mask_{};
  struct sigaction old_pipe_ {};
  int signals_ = -1;
  int port_ = 0;
  int code_ = 0;
  int lost_code_ = 0;  // of the first rank that elastic others went on without
  bool done_ = false;  // a rank ended with 0
  bool stopping_ = false;
  Clock::time_point kill_at_{};
  std::optional<Clock::time_point> ended_at_;  // the last rank
};

}  // namespace

int Launch(const LaunchOptions& options) {
  RequireInRange("ranks", options.ranks, 1, 4096);
  RequireInRange("port", options.port, 0, 65535);
  RequireInRange("threads", options.threads, 1, 4096);
  RequireInRange("grace_s", options.grace_s, 0.0, 3600.0);
  RequireInRange("max_restarts", options.max_restarts, 0, 1000);
  RequireInRange("restart_pause_s", options.restart_pause_s, 0.0, 60.0);
  if (options.command.empty()) throw InputError("launch needs a program to start");
  if (options.port > 0) RequireFreePort(options.port);
  return Launcher(options).Run();
}

}  // namespace dynamix
