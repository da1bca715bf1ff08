// How fast miniatures train: worker-windows per second on two threads (20 iterations, 8 workers,
// global batch 128) over tasks drawn from the training distribution, without and with a held-out
// evaluation per window; and the ceiling, the same multiply-adds as single-threaded cblas_sgemm
// calls of OpenBLAS on two threads, in turns in one run.
//
//   miniatures_bench [--json] [--data FOLDER] [--seconds S]
#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "dynamix/simulator/miniatures/miniature.h"
#include "dynamix/simulator/miniatures/ranges.h"

namespace {

using dynamix::Miniature;
using dynamix::MiniatureNetwork;
using dynamix::MiniatureOptions;
using dynamix::MiniaturePools;

constexpr int kThreads = 2, kTasks = 16, kWorkers = 8, kGlobalBatch = 128, kIterations = 20;
constexpr int kTurns = 5;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<MiniatureOptions> DrawTasks(const MiniaturePools& pools) {
  dynamix::MiniatureRanges ranges;
  if (!pools.fashion) ranges.families = {dynamix::MiniatureFamily::kTeacher};
  dynamix::Rng rng(2024);
  std::vector<MiniatureOptions> tasks;
  for (int i = 0; i < kTasks; ++i) tasks.push_back(RandomMiniature(rng, ranges));
  return tasks;
}

// Runs `pass` (one window of each task) on each thread for `seconds`; worker-windows per second of
// all threads.
double Measure(double seconds, const std::function<void(int thread)>& pass) {
  std::vector<double> rates(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      pass(t);
      const double start = Now();
      int passes = 0;
      do {
        pass(t);
        ++passes;
      } while (Now() - start < seconds);
      rates[t] = passes * kTasks * kWorkers / (Now() - start);
    });
  }
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

// The matrix products of one iteration: forward, gradient by the weights, gradient by the inputs of
// each layer but the first.
void Products(const MiniatureNetwork& network, std::vector<float>& a, std::vector<float>& b,
              std::vector<float>& c) {
  const auto multiply = [&](CBLAS_TRANSPOSE left, CBLAS_TRANSPOSE right, int m, int n, int k) {
    cblas_sgemm(CblasRowMajor, left, right, m, n, k, 1.0f, a.data(), left == CblasTrans ? m : k,
                b.data(), right == CblasTrans ? k : n, 0.0f, c.data(), n);
  };
  for (const auto& layer : network.layers()) {
    multiply(CblasNoTrans, CblasNoTrans, kGlobalBatch, layer.outputs, layer.inputs);
    multiply(CblasTrans, CblasNoTrans, layer.inputs, layer.outputs, kGlobalBatch);
    if (&layer != &network.layers().front())
      multiply(CblasNoTrans, CblasTrans, kGlobalBatch, layer.inputs, layer.outputs);
  }
}

struct Rates {
  double training, with_held_out, ceiling;
};

Rates MeasureAll(const MiniaturePools& pools, double seconds) {
  std::vector<std::vector<Miniature>> miniatures(kThreads);
  for (auto& own : miniatures)
    for (const MiniatureOptions& options : DrawTasks(pools)) own.emplace_back(options, pools);
  const std::vector<int> batches(kWorkers, kGlobalBatch / kWorkers);
  const auto train = [&](int thread) {
    for (Miniature& miniature : miniatures[thread]) miniature.Run(batches, kIterations);
  };
  const auto train_and_evaluate = [&](int thread) {
    for (Miniature& miniature : miniatures[thread]) {
      miniature.Run(batches, kIterations);
      miniature.HeldOutLoss();
    }
  };
  constexpr std::size_t kFloats = kGlobalBatch * kGlobalBatch;
  std::vector<std::vector<float>> buffers(3 * kThreads, std::vector<float>(kFloats, 0.5f));
  const auto products = [&](int thread) {
    for (const Miniature& miniature : miniatures[thread])
      for (int i = 0; i < kIterations; ++i)
        Products(miniature.network(), buffers[3 * thread], buffers[3 * thread + 1],
                 buffers[3 * thread + 2]);
  };
  std::vector<double> rates[3];
  for (int turn = 0; turn < kTurns; ++turn) {
    rates[0].push_back(Measure(seconds, train));
    rates[1].push_back(Measure(seconds, train_and_evaluate));
    rates[2].push_back(Measure(seconds, products));
  }
  for (auto& series : rates) std::sort(series.begin(), series.end());
  return {rates[0][kTurns / 2], rates[1][kTurns / 2], rates[2][kTurns / 2]};
}

void Print(const Rates& rates, bool json) {
  const struct {
    const char *name, *unit;
    double value, target;
  } kResults[] = {
      {"miniature_worker_windows_per_s", "1/s", rates.training,
       std::min(20000.0, rates.ceiling / 2)},
      {"miniature_with_held_out_worker_windows_per_s", "1/s", rates.with_held_out,
       std::min(20000.0, rates.ceiling / 2)},
      {"miniature_ceiling_worker_windows_per_s", "1/s", rates.ceiling, 0},
      {"miniature_vs_ceiling", "ratio", rates.training / rates.ceiling, 0.5},
  };
  const char* separator = "";
  if (json) std::printf("{\"results\": [");
  for (const auto& result : kResults) {
    if (json) {
      std::printf(
          "%s{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"target\": %.6g, "
          "\"better\": \"higher\"}",
          separator, result.name, result.value, result.unit, result.target);
      separator = ", ";
    } else {
      std::printf("%-46s %10.4g %-6s (target %.4g)\n", result.name, result.value, result.unit,
                  result.target);
    }
  }
  if (json) std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) try {
  bool json = false;
  double seconds = 0.4;
  std::filesystem::path data = DYNAMIX_FASHION_MNIST_DIR;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--json") {
      json = true;
    } else if (flag == "--data" && i + 1 < argc) {
      data = argv[++i];
    } else if (flag == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: %s [--json] [--data FOLDER] [--seconds S]\n", argv[0]);
      return flag == "--help" ? 0 : 2;
    }
  }
  openblas_set_num_threads(1);
  MiniaturePools pools{nullptr, dynamix::MakeGaussianPool(1)};
  if (std::filesystem::exists(data)) {
    pools.fashion = dynamix::LoadFashionPool(data);
  } else {
    std::fprintf(stderr, "%s is missing: teacher tasks only\n", data.c_str());
  }
  Print(MeasureAll(pools, seconds), json);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "miniatures_bench: %s\n", error.what());
  return 1;
}
