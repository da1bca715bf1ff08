// One rank of a small elastic job, for elastic_ranks_test.py, which starts several, kills, stops and
// revives them.
//
//   elastic_rank run LOG STOP [PLACE ITERATION]         with a launcher's environment, until the file
//                                                       STOP exists; ends itself by SIGKILL at the
//                                                       first such place from that iteration on, if
//                                                       one is given: End::At and DYNAMIX_FAILPOINT
//                                                       name them
//   elastic_rank reference LOG                          the same iterations, done from the start by
//                                                       the teams that LOG names
//
// A line of the log per iteration: iteration, cursor after it, batches, whether they are those this
// rank trained with. The last line: weights, as a checksum.
#include <ATen/core/Tensor.h>
#include <signal.h>
#include <zlib.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "dynamix/training/in_process_advisor.h"
#include "dynamix/training/testing/ranks_conformance.h"

namespace dynamix {
namespace {

constexpr int kStartBatches[] = {5, 17, 4, 6, 9, 3, 12, 8};  // of the first ranks, and so on

SampleJob Job() {
  SampleJob job;
  job.options.window_iterations = 5;
  job.options.optimizer = {.kind = OptimizerKind::kAdam,
                           .learning_rate = 0.01,
                           .base_batch = 32,
                           .rule = LearningRateRule::kSqrt,
                           .planned_samples = 100000};
  return job;
}

unsigned long Checksum(const std::vector<float>& weights) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(weights.data()), weights.size() * sizeof(float));
}

// Where this rank ends itself.
struct End {
  std::string place;
  std::int64_t iteration = -1;
  std::int64_t now = 0;  // the iteration under way
  void At(const char* here) const {
    if (place == here && now >= iteration) raise(SIGKILL);
  }
} g_end;

// Keeps the batches, through the collectives of a real advisor.
class Advice : public InProcessAdvisor {
 public:
  explicit Advice(WorkerGroup& group)
      : InProcessAdvisor(group, {}, [](const Round& round) { return Batches(round); }) {}
  Answer Poll() override {
    g_end.At("tail");  // between the first buckets and the last
    return {};
  }
  Status Submit(std::int64_t index, const RoundEntry& entry) override {
    g_end.At("round");
    return InProcessAdvisor::Submit(index, entry);
  }
};

int Fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return 1;
}

// What a job does after a window.
Status EndWindow(Worker& worker, WorkerGroup& group) {
  const auto evaluate = [&] {
    g_end.At("evaluating");
    double sum[] = {1};
    return group.AllReduce(sum);
  };
  const auto save = [&]() -> Status {
    const Result<WorkerState> saved = worker.Save();
    if (!saved) return Error{saved.error()};
    return Nothing{};
  };
  Status done = worker.Together(Worker::kEvaluated, evaluate);
  return done ? worker.Together(Worker::kSaved, save) : done;
}

int RunRank(const std::string& log_path, const std::string& stop_path) {
  const SampleJob job = Job();
  const char* timeout = std::getenv("ELASTIC_TIMEOUT_S");
  const double timeout_s = timeout != nullptr ? std::stod(timeout) : 20;
  auto group =
      WorkerGroup::Connect(ReadRankPlace(std::getenv), {.timeout_s = timeout_s, .elastic = true});
  if (!group) return Fail(group.error());
  Classifier classifier(job.model, BatchReader(job.data, {}, 1), 1);
  std::int64_t first = -1;
  std::size_t count = 0;
  Trainable trainable = TrainableOf(classifier);
  trainable.forward = [&, forward = trainable.forward](std::span<const Sample> samples,
                                                       PassSums& sums) {
    g_end.At("forward");
    // A device's time: killing at random times hits every place.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    first = samples.front().position;
    count = samples.size();
    return forward(samples, sums);
  };
  WorkerOptions options = job.options;
  options.start_batch = kStartBatches[group.value()->slot() % std::size(kStartBatches)];
  options.bounds.min = 1;
  Advice advice(*group.value());
  auto worker = Worker::Start(*group.value(), trainable, options, &advice);
  if (!worker) return Fail(worker.error());
  Worker& self = *worker.value();
  std::ofstream log(log_path, std::ios::app);
  while (!self.stopping()) {
    const std::int64_t now = g_end.now = self.iterations();
    const std::int64_t before = self.samples_seen();
    const Status done = self.Iterate(std::filesystem::exists(stop_path));
    if (!done) return Fail(done.error());
    std::int64_t begin = before;
    const int rank = group.value()->rank();
    for (int i = 0; i < rank; ++i) begin += self.batches()[i];
    const bool own = self.iterations() == now + 1 && begin == first &&
                     count == static_cast<std::size_t>(self.batches()[rank]);
    log << self.iterations() << ' ' << self.samples_seen();
    for (const int batch : self.batches()) log << ' ' << batch;
    log << (own ? " own" : " taken") << std::endl;
    if (!self.window_ended() || self.stopping()) continue;
    if (Status ended = EndWindow(self, *group.value()); !ended) return Fail(ended.error());
  }
  // All have ended their last iteration when this is whole; whether it is does not matter.
  double nothing[] = {0};
  (void)group.value()->AllReduce(nothing);
  log << "weights " << Checksum(self.parameters().CopyValues()) << std::endl;
  return 0;
}

// Iterations with the same team are one job of its size, from the state of the one before.
int RunReference(const std::string& log_path) {
  std::ifstream log(log_path);
  std::vector<std::pair<std::vector<int>, int>> parts;
  for (std::string line; std::getline(log, line);) {
    std::istringstream words(line);
    std::vector<int> batches;
    for (int batch; words >> batch;) batches.push_back(batch);
    if (parts.empty() || parts.back().first != batches) parts.emplace_back(batches, 0);
    ++parts.back().second;
  }
  WorkerState state;
  std::vector<float> weights;
  for (const auto& [batches, iterations] : parts) {
    SampleJob job = Job();
    const bool first = state.iterations == 0;
    job.start_batches = batches;
    WorkerState next;
    RunRanks(job, [&, count = iterations](Worker& worker, WorkerGroup& group, Advisor*) {
      WorkerState own = state;
      own.batches.assign(job.start_batches.begin(), job.start_batches.end());
      own.start_batches = own.batches;
      own.highest.assign(job.start_batches.size(), job.options.bounds.max);
      own.micro_batches.assign(job.start_batches.size(), job.options.micro_batch);
      if (!first) worker.Restore(own);
      for (int i = 0; i < count; ++i) ASSERT_TRUE(worker.Iterate().ok());
      const Result<WorkerState> saved = worker.Save();
      if (group.rank() != 0) return;
      next = saved.value();
      weights = worker.parameters().CopyValues();
    });
    state = next;
  }
  std::printf("%lu\n", Checksum(weights));
  return 0;
}

}  // namespace

void Failpoint(const char* place) { g_end.At(place); }

}  // namespace dynamix

int main(int count, char** words) {
  dynamix::SetThreads(1);
  const std::vector<std::string> given(words + 1, words + count);
  if (given.size() == 2 && given[0] == "reference") return dynamix::RunReference(given[1]);
  if (given.size() < 3 || given[0] != "run") return dynamix::Fail("usage: see the source");
  if (given.size() == 5) dynamix::g_end = {given[3], std::stoll(given[4])};
  return dynamix::RunRank(given[1], given[2]);
}
