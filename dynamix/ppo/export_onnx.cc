// ONNX by hand: a model is a protocol-buffers message, and the few fields a dense network needs are
// written directly (field numbers from onnx.proto3 of ONNX 1.12). A field is its number and wire
// type as a varint, then the value.
//
// Graph of one head, x float32 (NaN is missing), y float64 in between, as Normalizer computes it:
//
//   y      = Clip((Cast(x) - mean) * scale, -10, 10)
//   z      = Where(IsNaN(x) or IsInf(x), 0, Cast(y))
//   z      = Tanh(Gemm(z))                               once per hidden layer
//   logits = Gemm(z)
#include <cstring>
#include <vector>

#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/export.h"
#include "dynamix/ppo/tensor_file.h"

namespace dynamix {
namespace {

enum OnnxType { kFloat = 1, kDouble = 11 };

// A protocol-buffers message under construction.
class Message {
 public:
  Message& Int(int field, std::int64_t value) {
    Varint(static_cast<std::uint64_t>(field) << 3);
    Varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& Bytes(int field, std::string_view value) {
    Varint((static_cast<std::uint64_t>(field) << 3) | 2);
    Varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& Sub(int field, const Message& value) { return Bytes(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// GraphProto: node = 1, name = 2, initializer = 5, input = 11, output = 12.
class Graph {
 public:
  Graph() { message_.Bytes(2, "dynamix_policy"); }

  // NodeProto: input = 1, output = 2, op_type = 4, attribute = 5. Returns the output's name.
  std::string Node(const std::string& type, const std::vector<std::string>& inputs,
                   const std::string& output, const char* attribute = nullptr, int value = 0) {
    Message node;
    for (const std::string& input : inputs) node.Bytes(1, input);
    node.Bytes(2, output).Bytes(4, type);
    // AttributeProto: name = 1, i = 3, type = 20 (2 is INT).
    if (attribute != nullptr) node.Sub(5, Message().Bytes(1, attribute).Int(3, value).Int(20, 2));
    message_.Sub(1, node);
    return output;
  }

  // TensorProto: dims = 1, data_type = 2, name = 8, raw_data = 9. Returns the name.
  template <typename T>
  std::string Constant(const std::string& name, const std::vector<std::int64_t>& shape,
                       const std::vector<T>& values) {
    Message tensor;
    for (const std::int64_t extent : shape) tensor.Int(1, extent);
    tensor.Int(2, sizeof(T) == 4 ? kFloat : kDouble).Bytes(8, name);
    tensor.Bytes(9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
    message_.Sub(5, tensor);
    return name;
  }

  void Input(const std::string& name, int width) { Value(11, name, width); }
  void Output(const std::string& name, int width) { Value(12, name, width); }
  const Message& message() const { return message_; }

 private:
  // ValueInfoProto: name = 1, type = 2; TypeProto: tensor_type = 1; Tensor: elem_type = 1, shape =
  // 2; Shape: dim = 1; Dimension: dim_value = 1, dim_param = 2.
  void Value(int field, const std::string& name, int width) {
    Message shape;
    shape.Sub(1, Message().Bytes(2, name + "_rows")).Sub(1, Message().Int(1, width));
    const Message type = Message().Sub(1, Message().Int(1, kFloat).Sub(2, shape));
    message_.Sub(field, Message().Bytes(1, name).Sub(2, type));
  }

  Message message_;
};

std::string AddNormalizer(Graph& graph, const std::string& head, const Normalizer& inputs) {
  const int width = inputs.width();
  std::vector<double> mean, scale;
  for (const RunningMoments& column : inputs.columns()) {
    mean.push_back(column.mean);
    scale.push_back(1 / column.Deviation());
  }
  for (const int column : inputs.SwitchedOff()) scale[column] = 0;
  const std::string p = head + ".";
  std::string y = graph.Node("Cast", {head}, p + "double", "to", kDouble);
  y = graph.Node("Sub", {y, graph.Constant(p + "mean", {width}, mean)}, p + "centred");
  y = graph.Node("Mul", {y, graph.Constant(p + "scale", {width}, scale)}, p + "scaled");
  const std::string low = graph.Constant<double>(p + "low", {}, {-Normalizer::kClip});
  const std::string high = graph.Constant<double>(p + "high", {}, {Normalizer::kClip});
  y = graph.Node("Clip", {y, low, high}, p + "clipped");
  y = graph.Node("Cast", {y}, p + "float", "to", kFloat);
  const std::string nan = graph.Node("IsNaN", {head}, p + "nan");
  const std::string infinite = graph.Node("IsInf", {head}, p + "infinite");
  const std::string missing = graph.Node("Or", {nan, infinite}, p + "missing");
  return graph.Node("Where", {missing, graph.Constant<float>(p + "zero", {}, {0}), y},
                    p + "normalized");
}

void AddHead(Graph& graph, const std::string& head, const ActorCritic& model) {
  const Network<float>& network = model.network;
  graph.Input(head, network.shape().actor_inputs);
  std::string x = AddNormalizer(graph, head, model.actor_inputs);
  for (std::size_t l = 0; l < network.policy().size(); ++l) {
    const Layer& layer = network.policy()[l];
    const auto p = network.parameters().begin();
    const std::string weights = graph.Constant<float>(
        head + "." + TensorName("policy", l, "weight"), {layer.out, layer.in},
        {p + layer.weights, p + layer.weights + static_cast<std::ptrdiff_t>(layer.in) * layer.out});
    const std::string bias =
        graph.Constant<float>(head + "." + TensorName("policy", l, "bias"), {layer.out},
                              {p + layer.bias, p + layer.bias + layer.out});
    const std::string sum = layer.tanh ? head + ".sum." + std::to_string(l) : head + "_logits";
    x = graph.Node("Gemm", {x, weights, bias}, sum, "transB", 1);
    if (layer.tanh) x = graph.Node("Tanh", {x}, head + ".tanh." + std::to_string(l));
  }
  graph.Output(x, network.shape().logit_count());
}

}  // namespace

// ModelProto: ir_version = 1, producer_name = 2, graph = 7, opset_import = 8 (version = 2),
// metadata_props = 14 (key = 1, value = 2).
std::string EncodeOnnx(const PolicyModel& model) {
  Graph graph;
  if (model.local) AddHead(graph, "local", *model.local);
  if (model.team) AddHead(graph, "team", *model.team);
  Message file;
  file.Int(1, 8).Bytes(2, "dynamix").Sub(7, graph.message()).Sub(8, Message().Int(2, 13));
  file.Sub(14, Message().Bytes(1, "dynamix.actions").Bytes(2, Format(model.actions)));
  return file.bytes();
}

Status ExportOnnx(const PolicyModel& model, const std::string& path) {
  return WriteBytes(path, EncodeOnnx(model));
}

}  // namespace dynamix
