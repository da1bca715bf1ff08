// A training job small enough to run in a second: logistic regression on made-up data, one thread
// per rank, synchronous steps, unequal batches. It follows advice exactly as the training runtime
// does (all ranks switch in the iteration after every one was ready) and prints a line per window
// and one JSON object at the end, with a hash of the weights. Same batches, same bits.
//
// A job that is held trains nothing and goes on reporting until its input ends, so that a test can
// wait for what must happen to it, however slow the machine; then it trains the rest.
//
//   advised_job ADDRESS JOB RANKS SAMPLES WINDOW_ITERATIONS PACE_MS [FLAG=VALUE...]
//
//     first=R size=N              runs ranks R ... R + RANKS - 1 of N (default 0 and RANKS)
//     timeout=S breaker=S         of the client
//     run=N                       of this training (default: unknown)
//     hold=N                      holds after N windows (never when negative); a window then lasts
//                                 until every rank is answered
//     deaf=N                      the last N ranks ask where nobody listens
//     slow=R:MS                   rank R's compute takes so much longer
//     spin=MS                     every iteration uses so much processor time
//     ca=F cert=F key=F name=N    TLS files, and the name in the arbitrator's certificate
//     token=T                     sent with every call
//     history=F                   what every rank did and heard, a JSON line each (tests/history.py)
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dynamix/core/rng.h"
#include "dynamix/rpc/remote_advisor.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFeatures = 8;
constexpr int kStart = 16;
constexpr double kLearningRate = 0.05;
constexpr double kHeldMs = 5;  // least time of an iteration while the job is held

struct Flags {
  std::string address, job;
  int ranks = 1;
  std::int64_t samples = 0;
  int window = 5;
  double pace_ms = 1;
  std::map<std::string, std::string> more;

  std::string Text(const std::string& name) const {
    const auto found = more.find(name);
    return found == more.end() ? "" : found->second;
  }
  double Number(const std::string& name, double otherwise) const {
    const std::string text = Text(name);
    return text.empty() ? otherwise : std::stod(text);
  }
  std::string File(const std::string& name) const {
    if (Text(name).empty()) return {};
    std::ifstream file(Text(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// Sample i of the stream: features and a noisy label, from its number alone.
struct Sample {
  explicit Sample(std::int64_t index) {
    dynamix::Rng rng(static_cast<std::uint64_t>(index) * 2654435761u + 1);
    double score = 0;
    for (int f = 0; f < kFeatures; ++f) {
      x[f] = rng.Normal();
      score += (f % 3 - 1) * x[f];
    }
    label = score + rng.Normal() > 0 ? 1 : 0;
  }
  double x[kFeatures];
  double label;
};

// What one rank contributes to an iteration.
struct Part {
  double gradient[kFeatures] = {};
  double loss = 0, correct = 0;
  int batch = kStart;
  bool ready = true;
  int next = kStart;
};

// The file of the flag `history`. Thread-safe; events carry their time, so lines may come in any
// order. An empty path: nothing is written.
class History {
 public:
  explicit History(const std::string& path) : file_(path.empty() ? nullptr : OpenFile(path)) {}
  ~History() {
    if (file_ != nullptr) std::fclose(file_);
  }
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  bool on() const { return file_ != nullptr; }

  using Number = std::pair<const char*, std::optional<std::int64_t>>;
  void Add(int rank, Clock::time_point time, const char* event, std::vector<Number> numbers) {
    if (file_ == nullptr) return;
    const double seconds = std::chrono::duration<double>(time.time_since_epoch()).count();
    char begin[128];
    std::snprintf(begin, sizeof begin, "{\"t\":%.9f,\"rank\":%d,\"event\":\"%s\"", seconds, rank,
                  event);
    std::string line = begin;
    for (const auto& [name, value] : numbers)
      line += std::string(",\"") + name + "\":" + (value ? std::to_string(*value) : "null");
    const std::lock_guard lock(mutex_);
    std::fprintf(file_, "%s}\n", line.c_str());
  }

  void Add(int rank, const dynamix::AdvisorEvent& event) {
    using Kind = dynamix::AdvisorEvent::Kind;
    const auto incarnation = static_cast<std::int64_t>(event.incarnation);
    const auto epoch = static_cast<std::int64_t>(event.epoch);
    const Number window = {"window", event.window}, batch = {"batch", event.batch};
    switch (event.kind) {
      case Kind::kJoin:
        return Add(rank, event.time, "join",
                   {{"incarnation", incarnation}, {"epoch", epoch}, window});
      case Kind::kWelcome:
        return Add(rank, event.time, "welcome", {{"epoch", epoch}});
      case Kind::kReport:
        return Add(rank, event.time, "report",
                   {{"incarnation", incarnation},
                    {"epoch", epoch},
                    window,
                    batch,
                    {"low", event.bounds.lowest()},
                    {"high", event.bounds.highest()}});
      case Kind::kAdvice:
        return Add(rank, event.time, "advice",
                   {{"epoch", epoch}, window, batch, {"valid", event.valid_windows}});
      case Kind::kFailure:
        return Add(rank, event.time, "failure", {});
    }
  }

 private:
  static std::FILE* OpenFile(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (file == nullptr) std::exit((std::perror(path.c_str()), 2));
    std::setvbuf(file, nullptr, _IOLBF, 0);  // whole lines, also of a process that is killed
    return file;
  }

  std::FILE* const file_;
  std::mutex mutex_;
};

class AdvisedJob {
 public:
  explicit AdvisedJob(const Flags& flags)
      : flags_(flags),
        history_(flags.Text("history")),
        parts_(flags.ranks),
        barrier_(flags.ranks, Step{this}) {
    held_ = MustHold();
    for (int r = 0; r < flags.ranks; ++r) advisors_.push_back(MakeAdvisor(r));
  }

  void Run() {
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (int r = 0; r < flags_.ranks; ++r) threads.emplace_back([this, r] { RunRank(r); });
    for (std::thread& thread : threads) thread.join();
    const auto iterations = static_cast<double>(std::max<std::int64_t>(1, iterations_));
    std::printf("%s\n", Describe(Ms(Clock::now() - start) / iterations).c_str());
  }

 private:
  struct Step {
    AdvisedJob* job;
    void operator()() noexcept { job->TakeStep(); }
  };

  std::unique_ptr<dynamix::RemoteAdvisor> MakeAdvisor(int r) {
    dynamix::RemoteAdvisorOptions options;
    const bool deaf = r >= flags_.ranks - static_cast<int>(flags_.Number("deaf", 0));
    options.addresses = deaf ? "127.0.0.1:1" : flags_.address;
    options.job = flags_.job;
    options.rank = static_cast<int>(flags_.Number("first", 0)) + r;
    options.size = static_cast<int>(flags_.Number("size", flags_.ranks));
    options.settings = {.base_learning_rate = kLearningRate,
                        .base_batch = static_cast<double>(kStart) * flags_.ranks};
    options.tls = {flags_.File("ca"), flags_.File("cert"), flags_.File("key")};
    options.tls_name = flags_.Text("name");
    options.token = flags_.Text("token");
    options.run = static_cast<std::uint64_t>(flags_.Number("run", 0));
    options.timeout_s = options.patience_s = flags_.Number("timeout", 1);
    options.breaker_s = flags_.Number("breaker", 0.2);
    options.log = [r](const std::string& text) {
      std::fprintf(stderr, "rank %d: %s\n", r, text.c_str());
    };
    if (history_.on())
      options.trace = [this, r](const dynamix::AdvisorEvent& event) { history_.Add(r, event); };
    return std::make_unique<dynamix::RemoteAdvisor>(options);
  }

  void RunRank(int r) {
    const dynamix::BatchBounds bounds{.min = 4, .max = 256};
    const std::string slow = flags_.Text("slow");
    const bool is_slow = !slow.empty() && std::stoi(slow) == r;
    const double extra_ms = is_slow ? std::stod(slow.substr(slow.find(':') + 1)) : 0;
    const double spin_ms = flags_.Number("spin", 0);
    double compute_ms = 0, wait_ms = 0, iteration_ms = 0;
    int iterations = 0;
    while (!done_) {
      const Clock::time_point start = Clock::now();
      Part& part = parts_[r];
      if (!held_) Compute(r, part);
      if (!held_) Spin(spin_ms);
      const double paced = flags_.pace_ms * (0.5 + 0.5 * part.batch / kStart) + extra_ms;
      const double least = held_ ? std::max(paced, kHeldMs) : paced;
      std::this_thread::sleep_until(
          start + std::chrono::microseconds(static_cast<std::int64_t>(1e3 * least)));
      const dynamix::Answer answer = advisors_[r]->Poll();
      part.ready = answer.ready;
      part.next =
          answer.batch ? dynamix::ClampBatch(*answer.batch, part.batch, bounds) : part.batch;
      const Clock::time_point computed = Clock::now();
      barrier_.arrive_and_wait();
      const Clock::time_point end = Clock::now();
      compute_ms += Ms(computed - start);
      wait_ms += Ms(end - computed);
      iteration_ms += Ms(end - start);
      if (r == 0 && held_) Tell();
      if (++iterations < flags_.window || (held_ && !all_ready_)) continue;
      Submit(r, bounds, {compute_ms / iterations, wait_ms / iterations, iteration_ms / iterations});
      compute_ms = wait_ms = iteration_ms = iterations = 0;
    }
  }

  struct Times {
    double compute_ms, wait_ms, iteration_ms;
  };

  void Submit(int r, const dynamix::BatchBounds& bounds, const Times& times) {
    dynamix::RoundEntry entry{.bounds = bounds, .start_batch = kStart, .batch = parts_[r].batch};
    dynamix::Report& report = entry.report.emplace();
    report.iterations = flags_.window;
    report.local_batch = entry.batch;
    report.compute_ms = times.compute_ms;
    report.wait_ms = times.wait_ms;
    report.communication_ms = 0;
    report.iteration_ms = times.iteration_ms;
    report.training.loss = loss_;
    report.training.accuracy = accuracy_;
    report.training.noise_scale = 200;
    report.training.learning_rate = kLearningRate;
    (void)advisors_[r]->Submit(windows_[r]++, entry);
    if (r == 0) Tell();
  }

  void Tell() const {
    std::printf("window %lld %s\n", static_cast<long long>(windows_.at(0)), Describe(0).c_str());
    std::fflush(stdout);
  }

  // True from the window asked for until standard input has ended.
  bool MustHold() const {
    const double windows = flags_.Number("hold", -1);
    if (windows < 0 || static_cast<double>(iterations_) < windows * flags_.window) return false;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return poll(&input, 1, 0) == 0;
  }

  static void Spin(double ms) {
    const auto used = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
    };
    for (const double end = ms > 0 ? used() + ms : 0; ms > 0 && used() < end;) {
    }
  }

  static double Ms(Clock::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  }

  void Compute(int r, Part& part) {
    std::int64_t first = cursor_;
    for (int other = 0; other < r; ++other) first += parts_[other].batch;
    history_.Add(r, Clock::now(), "train", {{"first", first}, {"count", part.batch}});
    std::fill(std::begin(part.gradient), std::end(part.gradient), 0.0);
    part.loss = part.correct = 0;
    for (int i = 0; i < part.batch; ++i) {
      const Sample sample(first + i);
      const double score =
          std::inner_product(std::begin(sample.x), std::end(sample.x), weights_, 0.0);
      const double p = 1 / (1 + std::exp(-score));
      for (int f = 0; f < kFeatures; ++f) part.gradient[f] += (p - sample.label) * sample.x[f];
      part.loss -= std::log(std::max(1e-12, sample.label > 0 ? p : 1 - p));
      part.correct += (p > 0.5) == (sample.label > 0.5) ? 1 : 0;
    }
  }

  // Run by the last rank to arrive, while the others wait.
  void TakeStep() {
    if (!held_) Descend();
    held_ = MustHold();
    all_ready_ = std::all_of(parts_.begin(), parts_.end(), [](auto& part) { return part.ready; });
    if (!all_ready_) return;
    for (Part& part : parts_) {
      if (part.batch != part.next) {
        ++switches_;
        const int rank = static_cast<int>(&part - parts_.data());
        history_.Add(
            rank, Clock::now(), "use",
            {{"window", windows_.at(rank) - 1}, {"before", part.batch}, {"batch", part.next}});
      }
      part.batch = part.next;
      lowest_ = std::min(lowest_, part.batch);
      highest_ = std::max(highest_, part.batch);
    }
  }

  void Descend() {
    double count = 0, loss = 0, correct = 0;
    double gradient[kFeatures] = {};
    for (const Part& part : parts_) {
      count += part.batch;
      loss += part.loss;
      correct += part.correct;
      for (int f = 0; f < kFeatures; ++f) gradient[f] += part.gradient[f];
    }
    for (int f = 0; f < kFeatures; ++f) weights_[f] -= kLearningRate * gradient[f] / count;
    loss_ = loss / count;
    accuracy_ = correct / count;
    cursor_ += static_cast<std::int64_t>(count);
    ++iterations_;
    done_ = cursor_ >= flags_.samples;
  }

  std::string Describe(double iteration_ms) const {
    std::uint64_t hash = 14695981039346656037u;
    for (const double weight : weights_) {
      std::uint64_t bits;
      std::memcpy(&bits, &weight, sizeof bits);
      hash = (hash ^ bits) * 1099511628211u;
    }
    dynamix::RemoteAdvisorCounts sum;
    std::string batches;
    for (int r = 0; r < flags_.ranks; ++r) {
      const dynamix::RemoteAdvisorCounts one = advisors_[r]->counts();
      sum.submitted += one.submitted;
      sum.advised += one.advised;
      sum.failed += one.failed;
      sum.dropped += one.dropped;
      sum.joined += one.joined;
      sum.fallback = sum.fallback || one.fallback;
      batches += (r ? "," : "") + std::to_string(parts_[r].batch);
    }
    const auto number = [](std::int64_t value) { return static_cast<long long>(value); };
    char text[4096];
    std::snprintf(
        text, sizeof text,
        "{\"samples\":%lld,\"weights\":\"%016llx\",\"switches\":%d,\"lowest\":%d,\"highest\":%d,"
        "\"batches\":[%s],\"submitted\":%lld,\"advised\":%lld,\"failed\":%lld,\"dropped\":%lld,"
        "\"joined\":%lld,\"fallback\":%s,\"loss\":%.6f,\"iteration_ms\":%.6f}",
        number(cursor_), static_cast<unsigned long long>(hash), switches_, lowest_, highest_,
        batches.c_str(), number(sum.submitted), number(sum.advised), number(sum.failed),
        number(sum.dropped), number(sum.joined), sum.fallback ? "true" : "false", loss_,
        iteration_ms);
    return text;
  }

  const Flags flags_;
  History history_;  // the advisors' threads write to it, so it goes after them
  std::vector<std::unique_ptr<dynamix::RemoteAdvisor>> advisors_;
  std::vector<Part> parts_;
  std::map<int, std::int64_t> windows_ = [this] {
    std::map<int, std::int64_t> all;
    for (int r = 0; r < flags_.ranks; ++r) all[r] = 0;
    return all;
  }();
  double weights_[kFeatures] = {};
  double loss_ = 0, accuracy_ = 0;
  std::int64_t cursor_ = 0, iterations_ = 0;
  bool done_ = false, held_ = false, all_ready_ = true;
  int switches_ = 0, lowest_ = kStart, highest_ = kStart;
  std::barrier<Step> barrier_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return std::fprintf(stderr, "see the head of advised_job.cc\n"), 2;
  Flags flags{argv[1],
              argv[2],
              std::atoi(argv[3]),
              std::atoll(argv[4]),
              std::atoi(argv[5]),
              std::atof(argv[6]),
              {}};
  for (int i = 7; i < argc; ++i) {
    const std::string flag = argv[i];
    flags.more[flag.substr(0, flag.find('='))] = flag.substr(flag.find('=') + 1);
  }
  AdvisedJob(flags).Run();
}
