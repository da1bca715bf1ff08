// Any bytes as a report: refused with a sentence, or legal in every field.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "dynamix/core/report_fields.h"
#include "dynamix/rpc/messages.h"
#include "dynamix/rpc/service.h"

// Of a line per input nobody would read one.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  dynamix::SendTransportLogTo(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed =
      dynamix::ParseReport(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed.ok()) {
    if (parsed.error().empty()) std::abort();
    return 0;
  }
  const dynamix::ReportMessage& message = parsed.value();
  if (!dynamix::CheckJobName(message.worker.job).empty()) std::abort();
  if (message.entry.batch < 1 || message.entry.bounds.lowest() > message.entry.bounds.highest())
    std::abort();
  dynamix::VisitFields(*message.entry.report, [](const auto& field, const auto& value) {
    const double number = static_cast<double>(value);
    if (number < field.low || number > field.high) std::abort();
  });
  // What was understood can be said and understood again.
  if (!dynamix::ParseReport(dynamix::EncodeReport(message)).ok()) std::abort();
  return 0;
}
