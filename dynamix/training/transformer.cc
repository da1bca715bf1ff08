// A causal transformer over tokens (Vaswani et al. 2017), in the pre-norm form of GPT-2:
//   x = token embedding + position embedding
//   x = x + attention(norm(x)),  x = x + MLP(norm(x))      per layer
//   scores = linear(norm(x))
// Attention: 4 heads of 16 channels (times the width factor), softmax(q k^T / sqrt(channels)) v with
// a mask, so that a token sees only itself and those before it. MLP: 4 times as wide, GELU.
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "dynamix/training/networks.h"

namespace dynamix {
namespace {

namespace nn = torch::nn;

constexpr int kHeads = 4;
constexpr int kHeadChannels = 16;

struct Block : nn::Module {
  explicit Block(int channels)
      : attention_norm(register_module("attention_norm", Norm(channels))),
        mlp_norm(register_module("mlp_norm", Norm(channels))),
        queries_keys_values(
            register_module("queries_keys_values", nn::Linear(channels, 3 * channels))),
        mix(register_module("mix", nn::Linear(channels, channels))),
        up(register_module("up", nn::Linear(channels, 4 * channels))),
        down(register_module("down", nn::Linear(4 * channels, channels))) {}

  static nn::LayerNorm Norm(int channels) {
    return nn::LayerNorm(nn::LayerNormOptions(std::vector<std::int64_t>{channels}));
  }

  at::Tensor Forward(const at::Tensor& x, const at::Tensor& mask) {
    const at::Tensor y = x + Attend(attention_norm->forward(x), mask);
    return y + down->forward(torch::gelu(up->forward(mlp_norm->forward(y))));
  }

  at::Tensor Attend(const at::Tensor& x, const at::Tensor& mask) {
    const std::int64_t count = x.size(0), tokens = x.size(1), channels = x.size(2) / kHeads;
    const std::vector<at::Tensor> parts = queries_keys_values->forward(x)
                                              .view({count, tokens, 3, kHeads, channels})
                                              .permute({2, 0, 3, 1, 4})
                                              .unbind(0);
    const at::Tensor queries = parts[0] / std::sqrt(static_cast<double>(channels));
    const at::Tensor weights =
        torch::softmax(torch::matmul(queries, parts[1].transpose(-1, -2)) + mask, -1);
    return mix->forward(torch::matmul(weights, parts[2]).transpose(1, 2).reshape(x.sizes()));
  }

  nn::LayerNorm attention_norm, mlp_norm;
  nn::Linear queries_keys_values, mix, up, down;
};

struct Transformer : nn::Module {
  Transformer(int layers, const Widths& widths, int tokens, int classes) {
    const int channels = kHeads * widths(kHeadChannels);
    embedding = register_module("embedding", nn::Embedding(classes, channels));
    positions = register_module("positions", nn::Embedding(tokens, channels));
    for (int layer = 0; layer < layers; ++layer)
      blocks.push_back(
          register_module("block" + std::to_string(layer), std::make_shared<Block>(channels)));
    norm = register_module("norm", Block::Norm(channels));
    head = register_module("head", nn::Linear(channels, classes));
    // Not a buffer: it is neither trained nor averaged over workers.
    mask = torch::full({tokens, tokens}, -std::numeric_limits<float>::infinity()).triu(1);
  }

  // Sequences to one row of scores per token.
  at::Tensor Forward(const at::Tensor& tokens) {
    at::Tensor x = embedding->forward(tokens) + positions->weight;
    for (const auto& block : blocks) x = block->Forward(x, mask);
    return head->forward(norm->forward(x)).flatten(0, 1);
  }

  nn::Embedding embedding{nullptr}, positions{nullptr};
  std::vector<std::shared_ptr<Block>> blocks;
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};
  at::Tensor mask;
};

}  // namespace

Model MakeTransformer(int layers, const Widths& widths, int tokens, int classes) {
  return Wrap(std::make_shared<Transformer>(layers, widths, tokens, classes));
}

}  // namespace dynamix
