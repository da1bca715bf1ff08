// Any bytes as advice: refused, or a batch that exists.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "dynamix/rpc/messages.h"
#include "dynamix/rpc/service.h"

// Of a line per input nobody would read one.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  dynamix::SendTransportLogTo(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed =
      dynamix::ParseAdvice(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed.ok()) return 0;
  const dynamix::Advice& advice = parsed.value();
  if (advice.batch && *advice.batch < 1) std::abort();
  if (advice.valid_windows < 0 || advice.policy.size() > 256) std::abort();
  if (!dynamix::ParseAdvice(dynamix::EncodeAdvice(advice)).ok()) std::abort();
  return 0;
}
