#include "dynamix/ppo/tensor_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "dynamix/host/atomic_file.h"
#include "dynamix/host/checksum.h"

namespace dynamix {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kChecksumKey = "\"sha256\":\"";
constexpr std::size_t kDigits = 64;
constexpr std::size_t kPrefix = 8;

static_assert(std::endian::native == std::endian::little, "files are little-endian");

std::uint64_t HeaderLength(std::string_view bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kPrefix);
  return length;
}

// Where the checksum's digits are; nothing unless there is exactly one such place inside the
// header.
std::optional<std::size_t> ChecksumPlace(std::string_view bytes) {
  if (bytes.size() < kPrefix) return std::nullopt;
  const std::uint64_t length = HeaderLength(bytes);
  if (length > kMaxHeaderBytes || length > bytes.size() - kPrefix) return std::nullopt;
  const std::string_view header = bytes.substr(kPrefix, length);
  const std::size_t at = header.find(kChecksumKey);
  if (at == std::string_view::npos || header.rfind(kChecksumKey) != at) return std::nullopt;
  const std::size_t digits = at + kChecksumKey.size();
  if (digits + kDigits >= header.size() || header[digits + kDigits] != '"') return std::nullopt;
  return kPrefix + digits;
}

const char* TypeName(const Tensor& tensor) {
  return tensor.data.index() == 0 ? "F32" : tensor.data.index() == 1 ? "F64" : "U64";
}

template <typename T>
Result<Tensor> ReadTensor(const std::string& name, std::vector<std::int64_t> shape,
                          std::string_view bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  if constexpr (std::is_floating_point_v<T>) {
    for (const T value : values)
      if (!std::isfinite(value)) return Error{"tensor '" + name + "' holds a non-finite number"};
  }
  return Tensor{std::move(shape), std::move(values)};
}

// Number of elements; nothing when the shape is not a list of small non-negative integers.
std::optional<std::size_t> Elements(const Json& shape) {
  if (!shape.is_array() || shape.size() > 8) return std::nullopt;
  std::size_t count = 1;
  for (const Json& extent : shape) {
    if (!extent.is_number_unsigned()) return std::nullopt;
    const auto value = extent.get<std::uint64_t>();
    if (value > kMaxFileBytes) return std::nullopt;
    count *= value;
    if (count > kMaxFileBytes) return std::nullopt;
  }
  return count;
}

// `position` is where the tensor must begin: tensors are back to back, in the order of their
// offsets.
Result<Tensor> DecodeTensor(const std::string& name, const Json& entry, std::string_view data,
                            std::size_t position) {
  const Error malformed{"tensor '" + name + "' has a malformed description"};
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry.contains("data_offsets"))
    return malformed;
  const std::optional<std::size_t> count = Elements(entry["shape"]);
  const std::string type = entry["dtype"];
  if (!count || (type != "F32" && type != "F64" && type != "U64")) return malformed;
  const std::size_t size = *count * (type == "F32" ? 4 : 8);
  const Json& offsets = entry["data_offsets"];
  if (offsets[0].get<std::uint64_t>() != position || size > data.size() - position ||
      offsets[1].get<std::uint64_t>() != position + size)
    return Error{"tensor '" + name + "' does not cover its part of the file"};
  auto shape = entry["shape"].get<std::vector<std::int64_t>>();
  const std::string_view bytes = data.substr(position, size);
  if (type == "F32") return ReadTensor<float>(name, std::move(shape), bytes);
  if (type == "F64") return ReadTensor<double>(name, std::move(shape), bytes);
  return ReadTensor<std::uint64_t>(name, std::move(shape), bytes);
}

// Names of the tensors by where they begin, or an Error.
Result<std::vector<std::pair<std::uint64_t, std::string>>> TensorOrder(const Json& header) {
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    if (!entry.is_object() || !entry.contains("data_offsets"))
      return Error{"tensor '" + name + "' has a malformed description"};
    const Json& offsets = entry["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      return Error{"tensor '" + name + "' has malformed data_offsets"};
    order.emplace_back(offsets[0].get<std::uint64_t>(), name);
  }
  // A tensor without elements begins where the next one does: by name, as EncodeTensors writes
  // them.
  std::sort(order.begin(), order.end());
  return order;
}

Result<TensorFile> DecodeHeader(const Json& header, std::string_view data) {
  TensorFile file;
  if (header.contains("__metadata__")) {
    if (!header["__metadata__"].is_object()) return Error{"__metadata__ is not a map of strings"};
    for (const auto& [key, value] : header["__metadata__"].items()) {
      if (!value.is_string()) return Error{"__metadata__ is not a map of strings"};
      if (key != "sha256") file.metadata[key] = value.get<std::string>();
    }
  }
  const auto order = TensorOrder(header);
  if (!order) return Error{order.error()};
  std::size_t position = 0;
  for (const auto& [begin, name] : order.value()) {
    Result<Tensor> tensor = DecodeTensor(name, header[name], data, position);
    if (!tensor) return Error{tensor.error()};
    position = header[name]["data_offsets"][1].get<std::uint64_t>();
    file.tensors.emplace(name, std::move(tensor).value());
  }
  if (position != data.size()) return Error{"the file has data that belongs to no tensor"};
  return file;
}

}  // namespace

std::string EncodeTensors(const TensorFile& file) {
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : file.tensors) {
    const std::size_t begin = data.size();
    std::visit(
        [&](const auto& values) {
          data.append(reinterpret_cast<const char*>(values.data()),
                      values.size() * sizeof(values[0]));
        },
        tensor.data);
    header[name] = {{"dtype", TypeName(tensor)},
                    {"shape", tensor.shape},
                    {"data_offsets", {begin, data.size()}}};
  }
  header["__metadata__"] = file.metadata;
  header["__metadata__"]["sha256"] = std::string(kDigits, '0');
  // Free text may hold any bytes; what is not UTF-8 is replaced.
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  DYNAMIX_CHECK(text.size() <= kMaxHeaderBytes, "a header fits into 1 MiB");
  const std::uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), kPrefix);
  bytes += text;
  bytes += data;
  return Seal(std::move(bytes));
}

std::string Seal(std::string bytes) {
  const std::optional<std::size_t> place = ChecksumPlace(bytes);
  if (place) bytes.replace(*place, kDigits, ChecksumOf(bytes));
  return bytes;
}

std::string ChecksumOf(std::string_view bytes) {
  const std::optional<std::size_t> place = ChecksumPlace(bytes);
  if (!place) return "";
  return Sha256(
      {bytes.substr(0, *place), std::string(kDigits, '0'), bytes.substr(*place + kDigits)});
}

Result<TensorFile> DecodeTensors(std::string_view bytes) {
  if (bytes.size() < kPrefix) return Error{"the file is shorter than its length field (8 bytes)"};
  const std::uint64_t length = HeaderLength(bytes);
  if (length > kMaxHeaderBytes)
    return Error{"the header claims " + std::to_string(length) +
                 " bytes; at most 1048576 are allowed"};
  if (length > bytes.size() - kPrefix) return Error{"the file ends inside its header"};
  const std::optional<std::size_t> place = ChecksumPlace(bytes);
  if (!place) return Error{"the header has no sha256 checksum"};
  if (bytes.substr(*place, kDigits) != ChecksumOf(bytes))
    return Error{"the sha256 checksum does not match: the file is damaged or was cut off"};
  const Json header =
      Json::parse(bytes.substr(kPrefix, length), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Error{"the header is not a JSON object"};
  return DecodeHeader(header, bytes.substr(kPrefix + length));
}

Status WriteTensors(const std::string& path, std::string_view bytes) {
  return WriteBytes(path, bytes, [](const std::string& present) {
    const Result<std::string> current = ReadBytes(present);
    return current && DecodeTensors(current.value()).ok();
  });
}

}  // namespace dynamix
