#include "dynamix/host/blas_kernels.h"

#include <dlfcn.h>

#include <cstdlib>

namespace dynamix {

std::string BlasKernels() {
  // What libtorch calls: whichever BLAS Debian's alternatives name.
  void* library = dlopen("libblas.so.3", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "";
  std::string name;
  using CoreName = char* (*)();
  if (auto* core_name = reinterpret_cast<CoreName>(dlsym(library, "openblas_get_corename")))
    if (const char* text = core_name()) name = text;
  dlclose(library);
  return name;
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
