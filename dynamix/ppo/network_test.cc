#include "dynamix/ppo/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "dynamix/core/input_error.h"
#include "dynamix/ppo/actor_critic.h"
#include "dynamix/ppo/loss.h"
#include "dynamix/ppo/update.h"

namespace dynamix {
namespace {

TEST(NetworkTest, StartsWithOrthogonalLayersOfTheStatedGains) {
  Network<double> network(
      {.actor_inputs = 16, .critic_inputs = 0, .hidden = {64, 32}, .heads = {3, 2}});
  Rng rng(1);
  network.Initialize(rng);
  for (const Tower* tower : {&network.policy(), &network.value()}) {
    for (const Layer& layer : *tower) {
      const double output_gain = tower == &network.policy() ? 0.01 : 1.0;
      const double gain = layer.tanh ? std::sqrt(2.0) : output_gain;
      const double* w = &network.parameters()[layer.weights];
      const bool wide = layer.out <= layer.in;
      const int vectors = wide ? layer.out : layer.in, length = wide ? layer.in : layer.out;
      auto at = [&](int v, int k) { return wide ? w[v * layer.in + k] : w[k * layer.in + v]; };
      for (int a = 0; a < vectors; ++a)
        for (int b = 0; b <= a; ++b) {
          double dot = 0;
          for (int k = 0; k < length; ++k) dot += at(a, k) * at(b, k);
          EXPECT_NEAR(dot, a == b ? gain * gain : 0, 1e-12);
        }
      for (int o = 0; o < layer.out; ++o) EXPECT_EQ(network.parameters()[layer.bias + o], 0);
    }
  }
}

TEST(NetworkTest, CountsItsParameters) {
  const NetworkShape shape{
      .actor_inputs = 5, .critic_inputs = 7, .hidden = {4, 3}, .heads = {2, 3}};
  EXPECT_EQ(shape.parameter_count(),
            (5 * 4 + 4) + (4 * 3 + 3) + (3 * 5 + 5) + (7 * 4 + 4) + (4 * 3 + 3) + (3 + 1));
  EXPECT_EQ(Network<float>(shape).parameters().size(), shape.parameter_count());
}

TEST(NetworkTest, RefusesImpossibleShapesByName) {
  const NetworkShape shapes[] = {
      {.actor_inputs = 0, .critic_inputs = 0},
      {.actor_inputs = 3, .critic_inputs = -1},
      {.actor_inputs = 3, .critic_inputs = 0, .hidden = {0}},
      {.actor_inputs = 3, .critic_inputs = 0, .hidden = {}},
      {.actor_inputs = 3, .critic_inputs = 0, .hidden = {4}, .heads = {}}};
  for (const NetworkShape& shape : shapes) EXPECT_THROW(shape.Validate(), InputError);
}

TEST(NetworkTest, ARowDoesNotDependOnItsNeighbours) {
  const NetworkShape shape{.actor_inputs = 9, .critic_inputs = 0, .hidden = {24, 17}, .heads = {5}};
  Network<float> network(shape);
  Rng rng(2);
  network.Initialize(rng);
  constexpr int kRows = 700;
  std::vector<float> inputs(kRows * 9);
  for (float& x : inputs) x = static_cast<float>(rng.Normal());
  std::vector<int> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  Evaluator evaluator(shape);
  std::vector<float> together(kRows * 5), alone(5);
  std::vector<double> values(kRows), value(1);
  evaluator.Logits(network, inputs, rows, together);
  evaluator.Values(network, inputs, rows, values);
  for (int r = 0; r < kRows; r += 37) {
    evaluator.Logits(network, inputs, {&rows[r], 1}, alone);
    evaluator.Values(network, inputs, {&rows[r], 1}, value);
    for (int a = 0; a < 5; ++a) EXPECT_EQ(alone[a], together[r * 5 + a]);
    EXPECT_EQ(value[0], values[r]);
  }
}

// Samples for which every branch of the loss is taken, in more than one chunk of rows.
struct RandomSamples {
  static constexpr int kCount = 700;
  NetworkShape shape{.actor_inputs = 4, .critic_inputs = 6, .hidden = {5, 3}, .heads = {3, 2}};
  Network<double> network{shape};
  std::vector<double> actor, critic, log_probs, advantages, returns, values;
  std::vector<int> actions, rows;
  std::vector<std::uint8_t> masks;

  explicit RandomSamples(Rng& rng) {
    for (double& p : network.parameters()) p = rng.Normal() * 0.5;
    auto fill = [&](std::vector<double>& to, int count) {
      for (int i = 0; i < count; ++i) to.push_back(rng.Normal());
    };
    fill(actor, kCount * 4);
    fill(critic, kCount * 6);
    fill(advantages, kCount);
    fill(returns, kCount);
    fill(values, kCount);
    for (int i = 0; i < kCount; ++i) {
      log_probs.push_back(-1.5 + 0.3 * rng.Normal());
      const int first = static_cast<int>(rng.Below(3)), second = static_cast<int>(rng.Below(2));
      actions.insert(actions.end(), {first, second});
      for (int a = 0; a < 5; ++a) masks.push_back(rng.Uniform() < 0.8 ? 1 : 0);
      masks[i * 5 + first] = masks[i * 5 + 3 + second] = 1;
      if (i % 3 != 0) rows.push_back(i);
    }
  }
  Samples<double> Get() const {
    return {actor, critic, actions, masks, log_probs, advantages, returns, values};
  }
};

TEST(LossTest, GradientsAgreeWithFiniteDifferences) {
  Rng rng(3);
  RandomSamples samples(rng);
  LossPass<double> pass(samples.network);
  const LossOptions options{.clip = .2, .value_clip = .3, .entropy_coefficient = .05};
  const std::size_t count = samples.network.parameters().size();
  std::vector<double> gradient(count), unused(count);
  pass.Compute(samples.network, samples.Get(), samples.rows, options, gradient);
  for (std::size_t i = 0; i < count; ++i) {
    double& p = samples.network.parameters()[i];
    const double before = p, step = 1e-6;
    p = before + step;
    const double up =
        pass.Compute(samples.network, samples.Get(), samples.rows, options, unused).total;
    p = before - step;
    const double down =
        pass.Compute(samples.network, samples.Get(), samples.rows, options, unused).total;
    p = before;
    EXPECT_NEAR(gradient[i], (up - down) / (2 * step), 1e-7) << "parameter " << i;
  }
}

// Minibatches are drawn anew in every epoch, and every sample is in one of them.
TEST(UpdateTest, RowsAreShuffledAndNoneIsLost) {
  Network<float> network({.actor_inputs = 2, .critic_inputs = 0, .hidden = {3}, .heads = {2}});
  Rng rng(5);
  network.Initialize(rng);
  constexpr int kCount = 40;
  const std::vector<float> actor(kCount * 2, 0.5F), log_probs(kCount, -0.7F), zeros(kCount);
  const std::vector<int> actions(kCount, 1);
  const Samples<float> samples{actor, {}, actions, {}, log_probs, zeros, zeros, {}};
  Adam<float> adam(network.parameters().size());
  LossPass<float> loss(network);
  std::vector<int> in_order(kCount);
  std::iota(in_order.begin(), in_order.end(), 0);
  std::vector<int> rows = in_order;
  PpoOptions options;
  options.epochs = 1;
  options.target_kl = 0;
  UpdateNetwork(network, adam, loss, samples, rows, options, 0, rng);
  const std::vector<int> first = rows;
  EXPECT_NE(first, in_order);
  UpdateNetwork(network, adam, loss, samples, rows, options, 0, rng);
  EXPECT_NE(rows, first);
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, in_order);
}

TEST(LossTest, OneRowIsNotNormalised) {
  Rng rng(4);
  RandomSamples samples(rng);
  LossPass<double> pass(samples.network);
  std::vector<double> gradient(samples.network.parameters().size());
  const LossParts parts =
      pass.Compute(samples.network, samples.Get(), {samples.rows.data(), 1}, {}, gradient);
  EXPECT_TRUE(std::isfinite(parts.total));
}

}  // namespace
}  // namespace dynamix
