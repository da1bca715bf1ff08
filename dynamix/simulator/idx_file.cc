#include "dynamix/simulator/idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

struct CloseFile {
  void operator()(gzFile_s* file) const { gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, CloseFile>;

[[noreturn]] void Refuse(const std::filesystem::path& path, const std::string& what) {
  throw InputError("cannot read " + path.string() + ": " + what);
}

void ReadExactly(const std::filesystem::path& path, gzFile_s* file, std::uint8_t* out,
                 std::size_t count) {
  constexpr std::size_t kSlice = 1 << 24;
  for (std::size_t done = 0; done < count;) {
    const auto wanted = static_cast<unsigned>(std::min(kSlice, count - done));
    const int got = gzread(file, out + done, wanted);
    if (got < 0) Refuse(path, "it is corrupt (its gzip data does not decode)");
    if (got == 0) {
      Refuse(path, "it is truncated: expected " + std::to_string(count) + " bytes here, got " +
                       std::to_string(done));
    }
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace

IdxArray ReadIdxFile(const std::filesystem::path& path, int dimensions, std::size_t largest) {
  const File file(gzopen(path.c_str(), "rb"));
  if (!file) Refuse(path, "no such file, or no permission to read it");
  std::uint8_t magic[4];
  ReadExactly(path, file.get(), magic, 4);
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 0x08 || magic[3] != dimensions) {
    Refuse(path, "it is not an IDX file of unsigned bytes with " + std::to_string(dimensions) +
                     " dimensions");
  }
  IdxArray array;
  std::size_t count = 1;
  for (int d = 0; d < dimensions; ++d) {
    std::uint8_t word[4];
    ReadExactly(path, file.get(), word, 4);
    const std::uint32_t size = std::uint32_t{word[0]} << 24 | std::uint32_t{word[1]} << 16 |
                               std::uint32_t{word[2]} << 8 | word[3];
    if (size == 0 || size > largest / count) {
      Refuse(path, "its header claims a dimension of " + std::to_string(size) +
                       ", which is corrupt: at most " + std::to_string(largest) +
                       " bytes are expected");
    }
    count *= size;
    array.sizes.push_back(static_cast<int>(size));
  }
  array.data.resize(count);
  ReadExactly(path, file.get(), array.data.data(), count);
  // Reading past the end makes zlib compare the checksum.
  std::uint8_t extra;
  const int more = gzread(file.get(), &extra, 1);
  if (more > 0) Refuse(path, "it is longer than its header says");
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (code != Z_OK) Refuse(path, "it is corrupt (gzip checksum missing or wrong)");
  return array;
}

}  // namespace dynamix
