#include "dynamix/host/blas_kernels.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "dynamix/host/file_descriptor.h"
#include "dynamix/host/helper_process.h"

namespace dynamix {

namespace {

constexpr int kPatienceMs = 5000;  // loading takes some 20 ms
constexpr std::size_t kMostLetters = 64;

void TellKernels(int to) {
  // What libtorch calls: whichever BLAS Debian's alternatives name.
  void* library = dlopen("libblas.so.3", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return;
  using CoreName = char* (*)();
  if (auto* core_name = reinterpret_cast<CoreName>(dlsym(library, "openblas_get_corename")))
    if (const char* text = core_name()) (void)!write(to, text, strnlen(text, kMostLetters));
}

}  // namespace

std::string BlasKernels() try {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  // A damaged library ends or stops whoever loads it: a process of its own.
  const HelperProcess asked([&] { TellKernels(to.get()); });
  to.Close();
  pollfd news{from.get(), POLLIN, 0};
  char name[kMostLetters];
  if (poll(&news, 1, kPatienceMs) != 1) return "";
  const ssize_t length = read(from.get(), name, sizeof name);
  return {name, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
} catch (const std::system_error&) {
  return "";  // no process to be had
}

std::string BetterBlasKernels(const std::string& taken, bool avx2, bool avx512) {
  if (taken != "Prescott") return "";
  if (avx512) return "SkylakeX";
  return avx2 ? "Haswell" : "";
}

std::string BetterBlasKernels() {
  if (std::getenv(kBlasKernelsVariable) != nullptr) return "";
#ifdef __x86_64__
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  // Loading the library takes a moment: not where no answer would help.
  return avx2 ? BetterBlasKernels(BlasKernels(), avx2, avx512) : "";
#else
  return "";
#endif
}

void PassOnBlasKernels() {
  if (const std::string better = BetterBlasKernels(); !better.empty())
    setenv(kBlasKernelsVariable, better.c_str(), 0);
}

}  // namespace dynamix
