// TensorFile: named tensors and a string map in one file, sealed by a checksum. The layout is
// safetensors:
//
//   u64      length of the header, little-endian, at most 1 MiB
//   header   JSON {"__metadata__": {"sha256": "...", ...},
//                  "name": {"dtype": ..., "shape": ..., "data_offsets": ...}, ...}
//   data     the tensors, little-endian, back to back, covering the rest of the file
//
// dtypes are F32, F64 and U64. The checksum is SHA-256 over the whole file with the 64 digits of
// "sha256" as zeros, so any changed byte, of header or data, is refused. Reading executes nothing
// and believes nothing: every malformed, truncated or non-finite input is an Error that says what
// is wrong. Functions are pure or touch only the named files; do not write one path from two
// threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dynamix/core/result.h"

namespace dynamix {

struct Tensor {
  std::vector<std::int64_t> shape;
  std::variant<std::vector<float>, std::vector<double>, std::vector<std::uint64_t>> data;
};

struct TensorFile {
  std::map<std::string, std::string> metadata;  // without the checksum
  std::map<std::string, Tensor> tensors;
};

inline constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;

std::string EncodeTensors(const TensorFile& file);
Result<TensorFile> DecodeTensors(std::string_view bytes);

// The checksum an intact file of these bytes carries, as 64 hexadecimal digits; empty when there is
// no place for one.
std::string ChecksumOf(std::string_view bytes);
// The same bytes with the right checksum, for tests of what lies behind it; unchanged without a
// place for one.
std::string Seal(std::string bytes);

// Replaces `path` by these bytes of a tensor file; what was there, if intact, becomes
// PreviousGeneration(path) (host/atomic_file.h).
Status WriteTensors(const std::string& path, std::string_view bytes);

}  // namespace dynamix
