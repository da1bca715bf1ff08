// A training program of one's own, made adaptive: its model, its data, its loss, its loop.
//   build/release/examples/own_training                              one rank
//   dynamix launch -n 4 -- build/release/examples/own_training       four
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>

#include "dynamix/arbitrator/arbitrator.h"
#include "dynamix/policies/make_policy.h"
#include "dynamix/training/in_process_advisor.h"
#include "dynamix/training/worker.h"

int main() {
  dynamix::SetThreads(1);
  torch::manual_seed(1);  // the same data on every rank
  const torch::Tensor inputs = torch::randn({20000, 32});
  const torch::Tensor labels = inputs.matmul(torch::randn({32, 10})).argmax(1);
  torch::nn::Sequential net(torch::nn::Linear(32, 64), torch::nn::ReLU(),
                            torch::nn::Linear(64, 10));

  dynamix::Trainable trainable;
  trainable.parameters = net->parameters();
  trainable.samples = inputs.size(0);
  trainable.forward = [&](std::span<const dynamix::Sample> samples, dynamix::PassSums& sums) {
    std::vector<std::int64_t> rows;
    for (const dynamix::Sample& sample : samples) rows.push_back(sample.index);
    const torch::Tensor chosen = torch::tensor(rows), wanted = labels.index_select(0, chosen);
    const torch::Tensor scores = net->forward(inputs.index_select(0, chosen));
    sums.samples += static_cast<double>(rows.size());
    sums.correct += scores.argmax(1).eq(wanted).sum().item<double>();
    return torch::nn::functional::cross_entropy(
        scores, wanted, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  };

  auto group = dynamix::WorkerGroup::Connect(dynamix::ReadRankPlace(std::getenv), {});
  if (!group) return std::fprintf(stderr, "%s\n", group.error().c_str()), 1;
  dynamix::Arbitrator arbitrator(dynamix::RuleSpec("goodput"));
  dynamix::WorkerOptions options{.optimizer = {.learning_rate = 0.1, .planned_samples = 200000}};
  dynamix::InProcessAdvisor advisor(
      *group.value(), SettingsOf(options.optimizer),
      [&](const dynamix::Round& round) { return arbitrator.Step(round).sizes; });
  auto worker = dynamix::Worker::Start(*group.value(), trainable, options, &advisor);
  if (!worker) return std::fprintf(stderr, "%s\n", worker.error().c_str()), 1;

  while (worker.value()->samples_seen() < options.optimizer.planned_samples) {
    const dynamix::Status done = worker.value()->Iterate();
    if (!done) return std::fprintf(stderr, "%s\n", done.error().c_str()), 1;
    if (!worker.value()->window_ended() || group.value()->rank() != 0) continue;
    const dynamix::Report& report = worker.value()->report();
    std::printf("%8lld samples  accuracy %.3f  local batch %d\n",
                static_cast<long long>(worker.value()->samples_seen()), report.training.accuracy,
                report.local_batch);
  }
}
