// libFuzzer target: no bytes make the loader of checkpoints crash, hang or allocate what the file
// cannot hold. The bytes edit a good file (two bytes of position, one of value), which then gets its
// checksum again, so that the fuzzer gets behind it; with an even first byte they are the file.
#include <zlib.h>

#include <cstdint>
#include <string>

#include "dynamix/training/checkpoint.h"

namespace {

std::string GoodFile() {
  dynamix::Checkpoint checkpoint;
  checkpoint.job = "job";
  checkpoint.settings = {"rule = \"none\""};
  checkpoint.advisor = "state";
  dynamix::WorkerState& worker = checkpoint.worker;
  for (auto* numbers :
       {&worker.batches, &worker.start_batches, &worker.highest, &worker.micro_batches})
    *numbers = {8, 8};
  worker.parameters = {1, 2, 3};
  worker.optimizer = {{1, 2, 3}};
  worker.buffers = {{1}};
  return dynamix::EncodeCheckpoint(checkpoint);
}

std::string Seal(std::string bytes) {
  if (bytes.size() < 4) return bytes;
  const std::size_t body = bytes.size() - 4;
  const auto checksum =
      static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), body));
  return bytes.replace(body, 4, reinterpret_cast<const char*>(&checksum), 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = GoodFile();
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    std::string edited = good;
    for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
      const std::size_t position =
          static_cast<std::uint8_t>(bytes[i]) * 256u + static_cast<std::uint8_t>(bytes[i + 1]);
      edited[position % edited.size()] = bytes[i + 2];
    }
    bytes = std::move(edited);
  }
  const dynamix::Result<dynamix::Checkpoint> read = dynamix::DecodeCheckpoint(Seal(bytes));
  // What is accepted can be written again.
  if (read) (void)dynamix::EncodeCheckpoint(read.value());
  return 0;
}
