#include "dynamix/training/settings.h"

namespace dynamix {
namespace {

std::string NameOf(const std::string& setting) { return setting.substr(0, setting.find(" = ")); }

}  // namespace

std::string Differences(const std::vector<std::string>& own, const std::vector<std::string>& theirs,
                        const std::string& whose) {
  std::string differences;
  for (const std::string& setting : own) {
    const std::string name = NameOf(setting);
    for (const std::string& other : theirs) {
      if (NameOf(other) != name || other == setting) continue;
      differences += (differences.empty() ? "" : "; ") + setting + " (" + whose + " has " +
                     other.substr(name.size() + 3) + ")";
    }
  }
  return differences;
}

}  // namespace dynamix
