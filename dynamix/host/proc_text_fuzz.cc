// Any text as any file of /proc: the first byte chooses the parser.
#include <cstdint>
#include <string_view>

#include "dynamix/core/check.h"
#include "dynamix/host/proc_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dynamix;
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 10) {
    case 0:
      (void)NumberAfter(text, "usage_usec");
      break;
    case 1:
      (void)WholeNumber(text);
      break;
    case 2:
      (void)ParseProcessStat(text);
      break;
    case 3:
      (void)ParsePressureSeconds(text);
      break;
    case 4:
      for (const InterfaceBytes& interface : ParseInterfaces(text))
        DYNAMIX_CHECK(!interface.name.empty(), "an interface has a name");
      break;
    case 5:
      (void)ParseTcpSegments(text);
      break;
    case 6:
      for (const CgroupLine& line : ParseProcessCgroups(text))
        DYNAMIX_CHECK(line.path.front() == '/', "a path is absolute");
      break;
    case 7:
      (void)ParseMounts(text);
      break;
    case 8:
      for (const int pid : ParseProcessList(text)) DYNAMIX_CHECK(pid > 0, "a process has a number");
      break;
    default:
      (void)ParseSocketInode(text);
  }
  return 0;
}
