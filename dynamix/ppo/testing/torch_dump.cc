// Test program: writes what C++ computed, for check_with_torch.py to compute again.
//
//   torch_dump loss FOLDER      a rollout, its weights, advantages, loss and gradient
//   torch_dump export FOLDER    a policy, its two exports, 10,000 states per head, their logits
#include <bit>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>

#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/agent.h"
#include "dynamix/ppo/export.h"
#include "dynamix/ppo/model_tensors.h"
#include "dynamix/ppo/tensor_file.h"
#include "dynamix/ppo/testing/small_policy.h"

namespace dynamix {
namespace {

template <typename T>
Tensor Flat(const std::vector<T>& values) {
  return {{static_cast<std::int64_t>(values.size())}, values};
}
template <typename T, typename From>
Tensor FlatAs(const From& values) {
  return Flat(std::vector<T>(values.begin(), values.end()));
}

// Thirty rows that come and go, with masks and both kinds of end, until the rollout is full.
void FillRollout(Agent& agent, Rng& rng) {
  const AgentOptions& options = agent.options();
  const int rows = options.rows, logits = options.shape.logit_count();
  std::vector<float> actor(rows * options.shape.actor_inputs),
      critic(rows * options.shape.critic_inputs);
  std::vector<std::uint8_t> active(rows), masks(rows * logits);
  std::vector<double> rewards(rows), discounts(rows);
  std::vector<StepEnd> ends(rows);
  while (!agent.Full()) {
    for (float& x : actor)
      x = rng.Uniform() < .05 ? std::nanf("") : static_cast<float>(rng.Normal());
    for (float& x : critic) x = static_cast<float>(2 + rng.Normal());
    for (int r = 0; r < rows; ++r) {
      active[r] = rng.Uniform() < .8 ? 1 : 0;
      rewards[r] = rng.Normal();
      discounts[r] = rng.Uniform(.8, 1);
      ends[r] = static_cast<StepEnd>(rng.Uniform() < .15 ? 1 + rng.Below(2) : 0);
      for (int a = 0; a < logits; ++a) masks[r * logits + a] = rng.Uniform() < .75 ? 1 : 0;
      masks[r * logits] = masks[r * logits + options.shape.heads[0]] = 1;
    }
    agent.Act({actor, critic, active, masks});
    agent.Close({rewards, discounts, ends, critic});
  }
}

void DumpRollout(const Rollout& rollout, TensorFile& file) {
  file.tensors["actor_rows"] = Flat(rollout.actor_rows);
  file.tensors["critic_rows"] = Flat(rollout.critic_rows);
  file.tensors["actions"] = FlatAs<double>(rollout.actions);
  file.tensors["masks"] = FlatAs<double>(rollout.masks);
  file.tensors["active"] = FlatAs<double>(rollout.active);
  file.tensors["log_probs"] = Flat(rollout.log_probs);
  file.tensors["values"] = Flat(rollout.values);
  file.tensors["rewards"] = Flat(rollout.rewards);
  file.tensors["discounts"] = Flat(rollout.discounts);
  file.tensors["bootstraps"] = Flat(rollout.bootstraps);
  std::vector<double> ends;
  for (const StepEnd end : rollout.ends) ends.push_back(static_cast<double>(end));
  file.tensors["ends"] = Flat(ends);
}

TensorFile DumpLoss() {
  AgentOptions options;
  options.shape = {.actor_inputs = 7, .critic_inputs = 9, .hidden = {16, 12}, .heads = {5, 3}};
  options.rows = 30;
  options.ppo.steps = 40;
  Agent agent(options, 1);
  Rng rng(2);
  FillRollout(agent, rng);
  TensorFile file;
  PutModel("before", agent.model(), file);
  DumpRollout(agent.rollout(), file);

  const Rollout& rollout = agent.rollout();
  std::vector<double> last_values(options.rows);
  for (double& v : last_values) v = rng.Normal();
  const Advantages advantages = ComputeAdvantages(
      {rollout.steps(), rollout.rows(), rollout.rewards, rollout.values, rollout.discounts,
       rollout.ends, rollout.bootstraps, rollout.active, last_values},
      .9);
  file.tensors["last_values"] = Flat(last_values);
  file.tensors["advantages"] = Flat(advantages.advantages);

  // Elsewhere than where the rollout was made, so that ratios differ from 1 and some are clipped.
  ActorCritic moved = agent.model();
  for (float& p : moved.network.parameters()) p += static_cast<float>(.08 * rng.Normal());
  PutModel("moved", moved, file);
  const std::vector<float> signal(advantages.advantages.begin(), advantages.advantages.end());
  const std::vector<float> returns(advantages.returns.begin(), advantages.returns.end());
  const std::vector<float> values(rollout.values.begin(), rollout.values.end());
  std::vector<int> rows;
  for (std::size_t i = 0; i < rollout.active.size(); ++i)
    if (rollout.active[i] != 0 && i % 4 != 3) rows.push_back(static_cast<int>(i));
  std::vector<float> gradient(moved.network.parameters().size());
  LossPass<float> pass(moved.network);
  const LossParts parts =
      pass.Compute(moved.network,
                   {rollout.actor_rows, rollout.critic_rows, rollout.actions, rollout.masks,
                    rollout.log_probs, signal, returns, values},
                   rows, {.clip = .2, .value_clip = .2, .entropy_coefficient = .02}, gradient);
  file.tensors["rows"] = FlatAs<double>(rows);
  file.tensors["gradient"] = Flat(gradient);
  file.tensors["parts"] = Flat(std::vector<double>{parts.total, parts.policy, parts.value,
                                                   parts.entropy, parts.k3, parts.clip_fraction});
  return file;
}

// States of every size, some missing, some infinite.
std::vector<float> RandomStates(int width, int count, Rng& rng) {
  std::vector<float> states(static_cast<std::size_t>(width) * count);
  for (float& x : states) {
    x = static_cast<float>(rng.Normal() * std::exp(rng.Normal()));
    if (rng.Uniform() < .05) x = std::nanf("");
    if (rng.Uniform() < .002) x = HUGE_VALF;
  }
  return states;
}

void DumpHead(const std::string& head, const ActorCritic& model, Rng& rng, TensorFile& file) {
  constexpr int kStates = 10000;
  const std::vector<float> states = RandomStates(model.actor_inputs.width(), kStates, rng);
  std::vector<float> normalized(states.size()), logits(kStates * kActionCount);
  model.actor_inputs.Apply(states, normalized);
  std::vector<int> rows(kStates);
  std::iota(rows.begin(), rows.end(), 0);
  Evaluator evaluator(model.network.shape());
  evaluator.Logits(model.network, normalized, rows, logits);
  Choices choices;
  evaluator.Choose(model.network, normalized, rows, {}, Choice::kGreedy, rng, choices);
  // Bit patterns: a file holds no NaN.
  std::vector<std::uint64_t> bits;
  for (const float x : states) bits.push_back(std::bit_cast<std::uint32_t>(x));
  file.tensors[head + ".states"] = Flat(bits);
  file.tensors[head + ".logits"] = Flat(logits);
  file.tensors[head + ".decisions"] = FlatAs<double>(choices.actions);
}

bool Good(const Status& status) {
  if (!status) std::fprintf(stderr, "%s\n", status.error().c_str());
  return status.ok();
}

bool DumpExport(const std::string& folder) {
  const PolicyModel model = SmallPolicy({64, 64}, 1);
  PolicyModel team_only = model;
  team_only.actions.local = false;
  team_only.local.reset();
  TensorFile file;
  Rng rng(4);
  DumpHead("local", *model.local, rng, file);
  DumpHead("team", *model.team, rng, file);
  return Good(SavePolicy(folder + "/policy.safetensors", model)) &&
         Good(ExportOnnx(model, folder + "/policy.onnx")) &&
         Good(ExportTorchScript(model, folder + "/policy.pt")) &&
         Good(ExportOnnx(team_only, folder + "/team.onnx")) &&
         Good(ExportTorchScript(team_only, folder + "/team.pt")) &&
         Good(WriteBytes(folder + "/states.safetensors", EncodeTensors(file)));
}

}  // namespace
}  // namespace dynamix

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s loss|export FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[2];
  if (std::string(argv[1]) == "export") return dynamix::DumpExport(folder) ? 0 : 1;
  const std::string bytes = dynamix::EncodeTensors(dynamix::DumpLoss());
  return dynamix::Good(dynamix::WriteBytes(folder + "/loss.safetensors", bytes)) ? 0 : 1;
}
