#include "dynamix/cli/data_folder.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "dynamix/cli/closest.h"
#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;

bool HoldsData(const fs::path& folder) {
  return fs::is_directory(folder / "scenarios") && fs::is_directory(folder / "workloads");
}

// The file this code runs from: the Python module, or the program (whose name in Dl_info may be
// relative to where it was started).
fs::path OwnFile() {
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&HoldsData), &own) != 0 && own.dli_fname != nullptr &&
      fs::path(own.dli_fname).extension() == ".so")
    return fs::absolute(own.dli_fname);
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

}  // namespace

std::string DataFolder() {
  if (const char* named = std::getenv("DYNAMIX_DATA")) {
    if (HoldsData(named)) return named;
    throw InputError::OutOfRange("DYNAMIX_DATA", named, "a folder with scenarios/ and workloads/");
  }
  for (fs::path folder = OwnFile().parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (HoldsData(folder)) return folder.string();
    if (HoldsData(folder / "share" / "dynamix")) return (folder / "share" / "dynamix").string();
  }
  throw InputError(
      "no scenarios/ and workloads/ found near the program: set DYNAMIX_DATA to the folder that "
      "holds them");
}

std::string FashionMnistFolder() {
  if (const char* named = std::getenv("DYNAMIX_FASHION_MNIST")) return named;
  return "/usr/share/datasets/fashion-mnist";
}

std::string DatasetFolder(const std::string& dataset) {
  if (dataset == "fashion_mnist") return FashionMnistFolder();
  if (const char* all = std::getenv("DYNAMIX_DATASETS")) return (fs::path(all) / dataset).string();
  if (const char* cache = std::getenv("XDG_CACHE_HOME"))
    return (fs::path(cache) / "dynamix" / dataset).string();
  const char* home = std::getenv("HOME");
  return (fs::path(home ? home : ".") / ".cache" / "dynamix" / dataset).string();
}

std::vector<std::string> ShippedNames(const std::string& folder, const std::string& suffix) {
  const fs::path shipped = fs::path(DataFolder()) / folder;
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(shipped, error)) {
    const std::string name = entry.path().lexically_relative(shipped).string();
    if (name.ends_with(suffix)) names.push_back(name.substr(0, name.size() - suffix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string FindData(const std::string& what, const std::string& value, const std::string& folder,
                     const std::string& suffix, const std::vector<std::string>& other_choices) {
  std::error_code error;
  const fs::file_status status = fs::status(value, error);
  if (fs::exists(status) && !fs::is_directory(status)) return value;
  if (error && status.type() != fs::file_type::not_found)
    throw InputError(what + " = " + value + " cannot be read: " + error.message());
  const fs::path file = fs::path(DataFolder()) / folder / (value + suffix);
  if (fs::exists(file, error)) return file.string();
  std::vector<std::string> choices = ShippedNames(folder, suffix);
  choices.insert(choices.end(), other_choices.begin(), other_choices.end());
  std::sort(choices.begin(), choices.end());
  std::string allowed = "a file, or one of: ";
  for (const std::string& choice : choices)
    allowed += (&choice == &choices.front() ? "" : ", ") + choice;
  throw InputError::OutOfRange(what, value, allowed + DidYouMean(value, choices));
}

std::string FindWorkloadFile(const std::string& what, const std::string& value) {
  return FindData(what, value, "workloads", ".toml");
}

}  // namespace dynamix
