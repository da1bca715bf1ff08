// libFuzzer target: no bytes whatsoever make the loader crash, hang or accept nonsense. Even first
// byte: the rest is a file. Odd: the rest edits a good file (two bytes of position, one of value),
// which is then sealed again, so that the fuzzer gets behind the checksum.
#include <cstdint>
#include <string>

#include "dynamix/ppo/tensor_file.h"
#include "dynamix/ppo/testing/small_policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string good = dynamix::EncodePolicy(dynamix::SmallPolicy({1}, 1));
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    std::string edited = good;
    for (std::size_t i = 0; i + 2 < bytes.size(); i += 3) {
      const std::size_t position =
          static_cast<std::uint8_t>(bytes[i]) * 256u + static_cast<std::uint8_t>(bytes[i + 1]);
      edited[position % edited.size()] = bytes[i + 2];
    }
    bytes = edited;
  }
  bytes = dynamix::Seal(bytes);
  const dynamix::Result<dynamix::PolicyModel> model = dynamix::DecodePolicy(bytes);
  // What is accepted can be written again.
  if (model) (void)dynamix::EncodePolicy(model.value());
  return 0;
}
