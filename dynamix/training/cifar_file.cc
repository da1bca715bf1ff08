#include "dynamix/training/cifar_file.h"

#include <fstream>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

constexpr std::size_t kPixels = 3 * 32 * 32;

[[noreturn]] void Refuse(const std::filesystem::path& path, const std::string& what) {
  throw InputError("cannot read " + path.string() + ": " + what);
}

}  // namespace

std::vector<CifarFile> CifarFiles(CifarKind kind) {
  if (kind == CifarKind::kCifar100) return {{"train.bin", 50000, false}, {"test.bin", 10000, true}};
  std::vector<CifarFile> files;
  for (int i = 1; i <= 5; ++i)
    files.push_back({"data_batch_" + std::to_string(i) + ".bin", 10000, false});
  files.push_back({"test_batch.bin", 10000, true});
  return files;
}

void AppendCifarFile(const std::filesystem::path& path, CifarKind kind, int images,
                     SampleSet& set) {
  const int label_bytes = kind == CifarKind::kCifar10 ? 1 : 2;
  const int classes = kind == CifarKind::kCifar10 ? 10 : 100;
  const std::size_t record = kPixels + label_bytes;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) Refuse(path, "no such file, or no permission to read it");
  const auto size = static_cast<std::size_t>(file.tellg());
  if (size != record * images) {
    Refuse(path, "it has " + std::to_string(size) + " bytes, expected " +
                     std::to_string(record * images) + " (truncated, or of another data set)");
  }
  file.seekg(0);
  std::vector<std::uint8_t> bytes(size);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    Refuse(path, "reading failed");
  set.inputs.reserve(set.inputs.size() + kPixels * images);
  for (int i = 0; i < images; ++i) {
    const std::uint8_t* at = bytes.data() + i * record;
    const std::uint8_t label = at[label_bytes - 1];
    if (label >= classes) {
      Refuse(path, "image " + std::to_string(i) + " has the label " + std::to_string(label) +
                       ", expected 0 to " + std::to_string(classes - 1));
    }
    set.labels.push_back(label);
    set.inputs.insert(set.inputs.end(), at + label_bytes, at + record);
  }
}

}  // namespace dynamix
