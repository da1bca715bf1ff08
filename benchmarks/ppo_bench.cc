// How fast the learner is: environment steps per second (64 environments x 128 steps, 16 inputs, 5
// actions, two 64-64 tanh towers, 4 epochs of 4 minibatches), its ceiling (the same multiply-adds
// as cblas_sgemm calls of OpenBLAS and nothing else), and how long a learned policy takes to decide
// a round. One thread, medians.
//
//   ppo_bench [--seconds S]
//
// One JSON object {name: value} on stdout; benchmarks/ppo makes the table.
#include <cblas.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "dynamix/core/encoder.h"
#include "dynamix/core/features.h"
#include "dynamix/core/testing/sample_round.h"
#include "dynamix/ppo/agent.h"
#include "dynamix/ppo/learned_policy.h"

namespace {

using dynamix::Rng;

constexpr int kRows = 64, kSteps = 128, kInputs = 16, kActions = 5, kEpochs = 4, kMinibatches = 4;
constexpr int kTurns = 7;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// An environment that costs next to nothing: fresh random rows, reward 1 for the action a row's
// first number names.
struct Bandits {
  std::vector<float> rows = std::vector<float>(kRows * kInputs);
  std::vector<double> rewards = std::vector<double>(kRows);
  std::vector<double> discounts = std::vector<double>(kRows, 0.99);
  Rng rng{7};

  void Draw() {
    for (float& x : rows) x = static_cast<float>(rng.Next() >> 40) * 0x1.0p-24f;
  }
  void Reward(const std::vector<int>& actions) {
    for (int r = 0; r < kRows; ++r)
      rewards[r] = actions[r] == static_cast<int>(rows[r * kInputs] * kActions) ? 1 : 0;
  }
};

dynamix::Agent MakeAgent() {
  dynamix::AgentOptions options;
  options.shape = {
      .actor_inputs = kInputs, .critic_inputs = 0, .hidden = {64, 64}, .heads = {kActions}};
  options.rows = kRows;
  options.ppo.steps = kSteps;
  options.ppo.epochs = kEpochs;
  options.ppo.minibatches = kMinibatches;
  options.ppo.target_kl = 0;  // every epoch is run
  return {options, 1};
}

// One rollout and its update.
void Learn(dynamix::Agent& agent, Bandits& bandits) {
  for (int step = 0; step < kSteps; ++step) {
    bandits.Reward(agent.Act({bandits.rows, {}, {}, {}}));
    bandits.Draw();
    agent.Close({bandits.rewards, bandits.discounts, {}, {}});
  }
  (void)agent.Update({bandits.rows, {}, {}, {}}, 0);
}

// One dense layer's sgemm calls for n rows (row-major).
struct Gemms {
  std::vector<float> weights, x, y, dx, dw;

  Gemms() : weights(64 * 64, 0.01f), x(kRows * kSteps * 64, 0.1f), y(x), dx(x), dw(64 * 64) {}
  void Forward(int n, int in, int out) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, out, in, 1, x.data(), in,
                weights.data(), in, 0, y.data(), out);
  }
  void Backward(int n, int in, int out, bool inputs) {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, n, 1, y.data(), out, x.data(), in,
                0, dw.data(), in);
    if (inputs)
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, in, out, 1, y.data(), out,
                  weights.data(), in, 0, dx.data(), in);
  }
  void ForwardBoth(int n) {
    for (const int outputs : {kActions, 1}) {
      Forward(n, kInputs, 64);
      Forward(n, 64, 64);
      Forward(n, 64, outputs);
    }
  }
  void BackwardBoth(int n) {
    for (const int outputs : {kActions, 1}) {
      Backward(n, 64, outputs, true);
      Backward(n, 64, 64, true);
      Backward(n, kInputs, 64, false);
    }
  }
};

// The multiply-adds of Learn.
void Ceiling(Gemms& gemms) {
  for (int step = 0; step < kSteps; ++step) gemms.ForwardBoth(kRows);
  for (int i = 0; i < kEpochs * kMinibatches; ++i) {
    gemms.ForwardBoth(kRows * kSteps / kMinibatches);
    gemms.BackwardBoth(kRows * kSteps / kMinibatches);
  }
}

template <typename Pass>
double StepsPerSecond(double seconds, const Pass& pass) {
  const double start = Now();
  int passes = 0;
  do {
    pass();
    ++passes;
  } while (Now() - start < seconds);
  return passes * kRows * kSteps / (Now() - start);
}

dynamix::PolicyModel RandomPolicy() {
  Rng rng(3);
  dynamix::PolicyModel model;
  model.local.emplace(
      dynamix::NetworkShape{.actor_inputs = dynamix::LocalWidth(), .critic_inputs = 0});
  model.team.emplace(
      dynamix::NetworkShape{.actor_inputs = dynamix::TeamWidth(), .critic_inputs = 0});
  model.local->network.Initialize(rng);
  model.team->network.Initialize(rng);
  return model;
}

// Median microseconds of one decision of a whole round, both heads.
double DecideMicroseconds(int workers) {
  Rng rng(5);
  const dynamix::Round round = dynamix::SampleRound(rng, workers);
  const dynamix::States states = dynamix::Encoder().Encode(round);
  dynamix::LearnedPolicy policy(RandomPolicy(), dynamix::Choice::kGreedy);
  std::vector<double> times;
  for (int i = 0; i < 1000; ++i) {
    const double start = Now();
    (void)policy.Decide(round, states, rng);
    times.push_back(Now() - start);
  }
  return Median(times) * 1e6;
}

void Run(double seconds) {
  dynamix::Agent agent = MakeAgent();
  Bandits bandits;
  bandits.Draw();
  Gemms gemms;
  Learn(agent, bandits);
  Ceiling(gemms);
  std::vector<double> learner, ceiling, ratio;
  for (int turn = 0; turn < kTurns; ++turn) {
    learner.push_back(StepsPerSecond(seconds, [&] { Learn(agent, bandits); }));
    ceiling.push_back(StepsPerSecond(seconds, [&] { Ceiling(gemms); }));
    ratio.push_back(learner.back() / ceiling.back());
  }
  std::printf(
      "{\"learner_steps_per_s\": %.6g, \"ceiling_steps_per_s\": %.6g, \"steps_vs_ceiling\": %.4g, "
      "\"decide_32_us\": %.4g, \"decide_1024_us\": %.4g}\n",
      Median(learner), Median(ceiling), Median(ratio), DecideMicroseconds(32),
      DecideMicroseconds(1024));
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0.3;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: %s [--seconds S]\n", argv[0]);
      return 2;
    }
  }
  openblas_set_num_threads(1);
  Run(seconds);
  return 0;
}
