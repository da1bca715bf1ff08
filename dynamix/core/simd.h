// DYNAMIX_SIMD in front of a function compiles it once per x86-64 level and picks the best at
// start-up, so that one binary is portable and still uses AVX2 or AVX-512 where the machine has it.
//
// Off under sanitizers (their run-time is not ready when the choice is made) and on other
// compilers.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DYNAMIX_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DYNAMIX_SIMD
#endif
