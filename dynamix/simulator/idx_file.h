// IDX files (the format of MNIST and its successors), plain or gzip: one array of unsigned bytes.
//
//   u16      0
//   u8       type, 0x08: unsigned byte
//   u8       number of dimensions
//   u32      size, big-endian, one per dimension
//   u8       data, row-major
//
// Thread-safe. A file that is missing, truncated, longer than it says, fails its gzip checksum, or
// is of another type or dimension throws InputError naming the file and what was expected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace dynamix {

struct IdxArray {
  std::vector<int> sizes;  // of each dimension
  std::vector<std::uint8_t> data;
};

// `dimensions` is what the file must have; `largest` bounds the number of bytes read, against a
// corrupt header.
IdxArray ReadIdxFile(const std::filesystem::path& path, int dimensions, std::size_t largest);

}  // namespace dynamix
