// Benchmark of the training runtime. Prints one JSON object.
//   training_bench one MODEL WIDTH BATCH    one rank: plain libtorch loop and Worker, in turns
//   training_bench rank MODEL WIDTH BATCH   a rank of a job (torchrun's environment): Worker
//   training_bench elastic MODEL WIDTH BATCH   a rank of two jobs, one of them elastic, in turns
// Everything is on: advisor, tail, noise scale, statistics, reports.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/training/in_process_advisor.h"
#include "dynamix/training/worker.h"

namespace dynamix {
namespace {

constexpr int kTurns = 15;
constexpr double kTurnSeconds = 0.4;
constexpr char kData[] = "/usr/share/datasets/fashion-mnist";

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Iterations per second of `iterate`, over at least kTurnSeconds.
double Rate(const std::function<void()>& iterate) {
  const Clock::time_point start = Clock::now();
  int count = 0;
  do iterate();
  while (++count % 5 != 0 || SecondsSince(start) < kTurnSeconds);
  return count / SecondsSince(start);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// What a user would write: images as floats in memory, shuffled indices, torch::optim::SGD.
class PlainLoop {
 public:
  PlainLoop(const ModelOptions& options, const BatchReader& reader, int batch)
      : model_(MakeModel(options, reader.data().shape, reader.data().classes, 1)),
        optimizer_(model_.module->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)),
        batch_(batch) {
    const SampleShape& shape = reader.data().shape;
    const int count = reader.data().training.count();
    images_ = at::empty({count, shape.channels, shape.height, shape.width}, at::kFloat);
    labels_ = at::empty({count}, at::kLong);
    std::vector<Sample> all;
    for (int i = 0; i < count; ++i) all.push_back({i, i});
    reader.ReadTraining(all, images_.data_ptr<float>(), labels_.data_ptr<std::int64_t>());
    order_ = torch::randperm(count, at::kLong);
  }

  void Iterate() {
    if (at_ + batch_ > order_.size(0)) at_ = 0;
    const at::Tensor rows = order_.narrow(0, at_, batch_);
    at_ += batch_;
    optimizer_.zero_grad();
    const at::Tensor scores = model_.forward(images_.index_select(0, rows));
    const at::Tensor labels = labels_.index_select(0, rows);
    const at::Tensor loss = at::cross_entropy_loss(scores, labels);
    correct_ += scores.argmax(1).eq(labels).sum().item<double>();
    loss.backward();
    optimizer_.step();
    loss_ += loss.item<double>();
  }

 private:
  Model model_;
  torch::optim::SGD optimizer_;
  int batch_;
  at::Tensor images_, labels_, order_;
  std::int64_t at_ = 0;
  double loss_ = 0, correct_ = 0;  // as any loop would log
};

// One rank with a goodput policy that sees everything but whose bounds hold the batch.
class Adaptive {
 public:
  Adaptive(WorkerGroup& group, const ModelOptions& options, const BatchReader& reader, int batch)
      : arbitrator_(RuleSpec("goodput")),
        advisor_(group, {.base_learning_rate = 0.05, .base_batch = 1.0 * batch},
                 [this](const Round& round) { return arbitrator_.Step(round).sizes; }),
        classifier_(options, reader, 1) {
    WorkerOptions worker{.optimizer = {.learning_rate = 0.05, .base_batch = 1.0 * batch}};
    worker.start_batch = worker.bounds.min = worker.bounds.max = batch;
    worker_ = std::move(Worker::Start(group, TrainableOf(classifier_), worker, &advisor_)).value();
  }
  void Iterate() {
    if (const Status done = worker_->Iterate(); !done) throw std::runtime_error(done.error());
  }
  const Worker& worker() const { return *worker_; }

 private:
  Arbitrator arbitrator_;
  InProcessAdvisor advisor_;
  Classifier classifier_;
  std::unique_ptr<Worker> worker_;
};

void OneRank(const ModelOptions& options, const BatchReader& reader, int batch) {
  WorkerGroup alone;
  PlainLoop plain(options, reader, batch);
  Adaptive adaptive(alone, options, reader, batch);
  std::vector<float> inputs(reader.data().shape.size() * batch);
  std::vector<std::int64_t> labels(batch);
  Sampler sampler(reader.data().training.count(), 1);
  const auto read = [&] {
    reader.ReadTraining(sampler.Part({batch}, 0), inputs.data(), labels.data());
    sampler.Advance({batch});
  };
  std::vector<double> ratios, plain_rates, adaptive_rates, read_rates;
  for (int turn = 0; turn < kTurns; ++turn) {
    plain_rates.push_back(Rate([&] { plain.Iterate(); }));
    adaptive_rates.push_back(Rate([&] { adaptive.Iterate(); }));
    ratios.push_back(adaptive_rates.back() / plain_rates.back());
    if (turn < 3) read_rates.push_back(Rate(read));
  }
  std::printf(
      "{\"plain_samples_per_s\": %.1f, \"one_rank_samples_per_s\": %.1f, \"one_rank_vs_plain\": "
      "%.5f, \"data_share\": %.5f}\n",
      batch * Median(plain_rates), batch * Median(adaptive_rates), Median(ratios),
      Median(adaptive_rates) / Median(read_rates));
}

void OneOfMany(const ModelOptions& options, const BatchReader& reader, int batch) {
  auto group = WorkerGroup::Connect(ReadRankPlace(std::getenv), {});
  if (!group) throw std::runtime_error(group.error());
  Adaptive adaptive(*group.value(), options, reader, batch);
  const int iterations = std::atoi(std::getenv("BENCH_ITERATIONS"));
  for (int i = 0; i < 10; ++i) adaptive.Iterate();
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < iterations; ++i) adaptive.Iterate();
  const double rate = iterations * batch * group.value()->size() / SecondsSince(start);
  if (group.value()->rank() == 0) std::printf("{\"samples_per_s\": %.1f}\n", rate);
}

// Turns have a fixed length, so that all ranks change jobs together.
void Elastic(const ModelOptions& options, const BatchReader& reader, int batch) {
  RankPlace place = ReadRankPlace(std::getenv);
  const auto connect = [&](bool elastic) {
    auto group = WorkerGroup::Connect(place, {.elastic = elastic});
    if (!group) throw std::runtime_error(group.error());
    place.store += ".next";
    return std::move(group).value();
  };
  const auto fixed_group = connect(false), elastic_group = connect(true);
  Adaptive fixed(*fixed_group, options, reader, batch);
  Adaptive elastic(*elastic_group, options, reader, batch);
  const int iterations = std::atoi(std::getenv("BENCH_ITERATIONS"));
  const auto seconds = [&](Adaptive& job) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < iterations; ++i) job.Iterate();
    return SecondsSince(start);
  };
  std::vector<double> ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    // In both orders: whoever comes second has the warmer machine.
    const bool first = turn % 2 == 0;
    const double one = seconds(first ? fixed : elastic), two = seconds(first ? elastic : fixed);
    ratios.push_back(first ? two / one : one / two);
  }
  if (fixed_group->rank() == 0) std::printf("{\"elastic_vs_fixed\": %.5f}\n", Median(ratios));
}

}  // namespace
}  // namespace dynamix

int main(int argc, char** argv) {
  if (argc != 5)
    return std::fprintf(stderr, "usage: training_bench one|rank|elastic MODEL WIDTH BATCH\n"), 2;
  dynamix::SetThreads(1);
  const dynamix::ModelOptions model{.name = argv[2], .width = std::atof(argv[3])};
  const dynamix::BatchReader reader(std::make_shared<const dynamix::Dataset>(
                                        dynamix::LoadDataset("fashion_mnist", dynamix::kData)),
                                    {}, 1);
  const int batch = std::atoi(argv[4]);
  if (std::string(argv[1]) == "one") {
    dynamix::OneRank(model, reader, batch);
  } else if (std::string(argv[1]) == "elastic") {
    dynamix::Elastic(model, reader, batch);
  } else {
    dynamix::OneOfMany(model, reader, batch);
  }
}
