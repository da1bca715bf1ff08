// libFuzzer target: no bytes in a rounds.jsonl make its readers crash or hang, only throw
// InputError.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "dynamix/core/input_error.h"
#include "dynamix/record/recorded_curve.h"
#include "dynamix/record/report_json.h"
#include "dynamix/record/rounds_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("rounds", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  try {
    dynamix::ReadRounds(path, [](const nlohmann::json& line) {
      for (const nlohmann::json& report : line.at("reports"))
        if (report.is_object()) (void)dynamix::ReadReportJson(report, 0);
    });
  } catch (const dynamix::InputError&) {
  }
  try {
    (void)dynamix::ReadRecordedCurve(path);
  } catch (const dynamix::InputError&) {
  }
  return 0;
}
