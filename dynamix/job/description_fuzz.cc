// libFuzzer target: no text makes the readers of scenarios and workloads crash or hang. What they
// accept can be written, and read again. The files of scenarios/ and workloads/ are good seeds.
#include <cstdint>
#include <string_view>

#include "dynamix/core/input_error.h"
#include "dynamix/job/scenario.h"
#include "dynamix/job/workload.h"

namespace {

template <typename Parse, typename Format>
void ReadAndWrite(std::string_view text, Parse parse, Format format) {
  std::string written;
  try {
    written = format(parse(text, "fuzz"));
  } catch (const dynamix::InputError&) {
    return;
  }
  (void)parse(written, "written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadAndWrite(text, dynamix::ParseScenario, dynamix::FormatScenario);
  ReadAndWrite(text, dynamix::ParseWorkload, dynamix::FormatWorkload);
  return 0;
}
