#include "dynamix/cli/helper_program.h"

#include <filesystem>

namespace dynamix {

std::string HelperProgram(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  std::error_code error;
  if (fs::path beside = folder / name; fs::exists(beside, error)) return beside.string();
  return (folder.parent_path() / "libexec" / "dynamix" / name).string();
}

}  // namespace dynamix
