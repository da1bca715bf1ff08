// The numbers of testdata/ppo_golden.json, made by testdata/ppo_golden.py with PyTorch in float64.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "dynamix/ppo/adam.h"
#include "dynamix/ppo/advantage.h"
#include "dynamix/ppo/kernels.h"
#include "dynamix/ppo/loss.h"
#include "dynamix/ppo/network.h"
#include "dynamix/ppo/normalizer.h"

namespace dynamix {
namespace {

constexpr int kGoldenRows = 12, kGoldenInputs = 5;

const nlohmann::json& Golden() {
  static const nlohmann::json golden = [] {
    std::ifstream file(DYNAMIX_PPO_TESTDATA "/ppo_golden.json");
    return nlohmann::json::parse(file);
  }();
  return golden;
}

std::vector<double> Fill(std::size_t count, double a, double b, double scale) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = scale * std::sin(a * static_cast<double>(i) + b);
  return values;
}

template <typename T>
std::vector<T> As(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// The network, the samples and the options of the script, in T.
template <typename T>
struct Case {
  Network<T> network{
      {.actor_inputs = kGoldenInputs, .critic_inputs = 0, .hidden = {8}, .heads = {3, 2}}};
  std::vector<T> rows = As<T>(Fill(kGoldenRows * kGoldenInputs, .71, .05, 1));
  std::vector<int> actions, indices;
  std::vector<std::uint8_t> masks = std::vector<std::uint8_t>(kGoldenRows * 5, 1);
  std::vector<T> log_probs = std::vector<T>(kGoldenRows), advantages, returns, values;
  LossOptions options{.clip = .2, .value_clip = .2};

  Case() {
    const double weights[] = {.37, .53, .41, .59}, biases[] = {.9, 1.3, .8, 1.7};
    int k = 0;
    for (const Tower* tower : {&network.policy(), &network.value()}) {
      for (const Layer& layer : *tower) {
        const auto w = Fill(static_cast<std::size_t>(layer.in) * layer.out, weights[k], .11, .5);
        const auto b = Fill(layer.out, biases[k], .11, .1);
        std::copy(w.begin(), w.end(), network.parameters().begin() + layer.weights);
        std::copy(b.begin(), b.end(), network.parameters().begin() + layer.bias);
        ++k;
      }
    }
    for (int i = 0; i < kGoldenRows; ++i) actions.insert(actions.end(), {i % 3, (i / 2) % 2});
    actions[3 * 2] = 0, actions[7 * 2] = 1, actions[9 * 2 + 1] = 0;
    masks[3 * 5 + 2] = masks[7 * 5 + 0] = masks[9 * 5 + 4] = 0;
    for (const double x : Fill(kGoldenRows, .83, .4, 2)) advantages.push_back(T(x + .3));
    returns = As<T>(Fill(kGoldenRows, .29, .9, 1.5));
    values = As<T>(Fill(kGoldenRows, .67, .3, .8));
    indices.resize(kGoldenRows);
    std::iota(indices.begin(), indices.end(), 0);
  }

  Samples<T> Get(bool masked) const {
    return {
        .actor_rows = rows,
        .critic_rows = {},
        .actions = actions,
        .masks = masked ? std::span<const std::uint8_t>(masks) : std::span<const std::uint8_t>(),
        .log_probs = log_probs,
        .advantages = advantages,
        .returns = returns,
        .values = values};
  }
};

// Log-probabilities now, minus the script's offsets, are the old ones.
template <typename T>
void SetOldLogProbs(Case<T>& c, LossPass<T>& pass, bool masked) {
  std::vector<T> gradient(c.network.parameters().size());
  pass.Compute(c.network, c.Get(masked), c.indices, c.options, gradient);
  const auto offsets = Fill(kGoldenRows, 1.1, .2, .3);
  for (int i = 0; i < kGoldenRows; ++i) c.log_probs[i] = pass.log_probs()[i] - T(offsets[i]);
}

template <typename T>
void ExpectLosses(bool masked, double tolerance) {
  const auto& want = Golden()[masked ? "masked" : "plain"];
  Case<T> c;
  LossPass<T> pass(c.network);
  SetOldLogProbs(c, pass, masked);
  std::vector<T> gradient(c.network.parameters().size());
  const LossParts got = pass.Compute(c.network, c.Get(masked), c.indices, c.options, gradient);
  for (int i = 0; i < kGoldenRows; ++i) {
    EXPECT_NEAR(pass.log_probs()[i], want["logp"][i].get<double>(), tolerance);
    EXPECT_NEAR(pass.values()[i], want["value"][i].get<double>(), tolerance);
  }
  EXPECT_NEAR(got.policy, want["pg"].get<double>(), tolerance);
  EXPECT_NEAR(got.value, want["vl_clipped"].get<double>(), tolerance);
  EXPECT_NEAR(got.entropy, want["entropy"].get<double>(), tolerance);
  EXPECT_NEAR(got.k1, want["k1"].get<double>(), tolerance);
  EXPECT_NEAR(got.k3, want["k3"].get<double>(), tolerance);
  EXPECT_NEAR(got.clip_fraction, want["clipfrac"].get<double>(), tolerance);
  EXPECT_NEAR(got.total, want["loss"].get<double>(), tolerance);
  c.options.value_clip = 0;
  const LossParts plain = pass.Compute(c.network, c.Get(masked), c.indices, c.options, gradient);
  EXPECT_NEAR(plain.value, want["vl_unclipped"].get<double>(), tolerance);
}

TEST(GoldenTest, TheFirstHeadsLogProbabilitiesAgree) {
  for (const bool masked : {false, true}) {
    Case<double> c;
    TowerPass<double> policy(c.network.policy(), 1);
    GatherRows<double>(c.rows, kGoldenInputs, c.indices, policy.input());
    double* log_p = policy.Forward(c.network.parameters(), 1);
    MaskedLogProbs<double>(c.network.shape(), c.Get(masked).masks, c.indices, log_p);
    const auto& want = Golden()[masked ? "masked" : "plain"]["logp_head0"];
    for (int i = 0; i < kGoldenRows; ++i)
      EXPECT_NEAR(log_p[c.actions[i * 2] * kBlockRows + i], want[i].get<double>(), 1e-9);
  }
}

TEST(GoldenTest, LossesAgreeWithPyTorchInFloat64) {
  ExpectLosses<double>(false, 1e-9);
  ExpectLosses<double>(true, 1e-9);
}

TEST(GoldenTest, LossesAgreeWithPyTorchInFloat32) {
  ExpectLosses<float>(false, 1e-5);
  ExpectLosses<float>(true, 1e-5);
}

template <typename T>
void ExpectAdamSteps(double tolerance) {
  Case<T> c;
  LossPass<T> pass(c.network);
  SetOldLogProbs(c, pass, false);
  Adam<T> adam(c.network.parameters().size());
  std::vector<T> gradient(c.network.parameters().size());
  for (const auto& want : Golden()["adam_lr2.5e-4_eps1e-5_clip0.5_first3"]) {
    const LossParts loss = pass.Compute(c.network, c.Get(false), c.indices, c.options, gradient);
    EXPECT_NEAR(loss.total, want["loss"].get<double>(), tolerance);
    EXPECT_NEAR(ClipGradient(gradient, .5), want["grad_norm_before_clip"].get<double>(), tolerance);
    adam.Step(c.network.parameters(), gradient, 2.5e-4, 1e-5);
    double sum = 0, squares = 0;
    for (const T p : c.network.parameters()) sum += p, squares += double(p) * double(p);
    EXPECT_NEAR(sum, want["sum_params"].get<double>(), tolerance);
    EXPECT_NEAR(squares, want["sumsq_params"].get<double>(), tolerance);
  }
}

TEST(GoldenTest, ThreeAdamStepsAgreeWithPyTorch) {
  ExpectAdamSteps<double>(1e-9);
  ExpectAdamSteps<float>(1e-5);
}

TEST(GoldenTest, AdvantagesTellTruncationFromTermination) {
  constexpr int kSteps = 10;
  std::vector<double> rewards, values, bootstraps(kSteps), discounts(kSteps, .99);
  std::vector<StepEnd> ends(kSteps, StepEnd::kContinues);
  for (int t = 0; t < kSteps; ++t) {
    rewards.push_back(std::sin(.7 * t) + .5);
    values.push_back(std::cos(.4 * t));
  }
  const std::vector<double> last = {std::cos(.4 * kSteps)};
  ends[3] = StepEnd::kTerminated;
  ends[6] = StepEnd::kTruncated;
  bootstraps[6] = .77;
  const auto& want = Golden()["gae"];
  for (const bool bootstrap : {true, false}) {
    if (!bootstrap) ends[6] = StepEnd::kTerminated;
    const Advantages got =
        ComputeAdvantages({kSteps, 1, rewards, values, discounts, ends, bootstraps, {}, last}, .95);
    const auto& numbers =
        want[bootstrap ? "adv_g.99_l.95_bootstrap" : "adv_g.99_l.95_trunc_as_done"];
    for (int t = 0; t < kSteps; ++t)
      EXPECT_NEAR(got.advantages[t], numbers[t].get<double>(), 1e-9) << t;
  }
}

TEST(GoldenTest, RunningMomentsAgree) {
  Normalizer normalizer(2);
  for (int b = 0; b < 3; ++b) {
    std::vector<double> columns[2];
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 2; ++j) columns[j].push_back(std::sin(8 * b + 2 * i + j) * (j + 1) + b);
    for (int j = 0; j < 2; ++j) normalizer.columns()[j].Update(columns[j]);
  }
  const auto& want = Golden()["running_mean_std"];
  for (int j = 0; j < 2; ++j) {
    EXPECT_NEAR(normalizer.columns()[j].mean, want["mean"][j].get<double>(), 1e-9);
    EXPECT_NEAR(normalizer.columns()[j].variance, want["var"][j].get<double>(), 1e-9);
    EXPECT_NEAR(normalizer.columns()[j].count, want["count"].get<double>(), 1e-9);
  }
}

}  // namespace
}  // namespace dynamix
