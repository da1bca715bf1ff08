// Which kernels OpenBLAS takes on this processor, and better ones. OpenBLAS knows processors by their
// model number: on one that is newer than the library it falls back to its oldest kernels (Prescott,
// SSE3), also where the processor has AVX-512 (seen: 0.3.21 on Emerald Rapids). Networks whose time is
// in matrix products then train at some 60 % of their speed. OPENBLAS_CORETYPE names the kernels, and
// is read when the library is loaded: it must be set before a program starts.
//
// Not thread-safe: reads and sets the environment. Never fails: a process of its own loads OpenBLAS, and
// without an answer of it there is nothing to say.
#pragma once

#include <string>

namespace dynamix {

// The environment variable that names the kernels.
inline constexpr const char* kBlasKernelsVariable = "OPENBLAS_CORETYPE";

// What OpenBLAS takes, by its own name ("SkylakeX"); empty without OpenBLAS.
std::string BlasKernels();

// Kernels for a processor with these instructions when `taken` is the fallback; else empty.
std::string BetterBlasKernels(const std::string& taken, bool avx2, bool avx512);
// The same, of this machine; empty also when the user has named some.
std::string BetterBlasKernels();

// Programs that this process starts or becomes have the better kernels, if there are any.
void PassOnBlasKernels();

}  // namespace dynamix
