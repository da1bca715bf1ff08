#include "dynamix/host/blas_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace dynamix {
namespace {

TEST(BlasKernelsTest, TheFallbackIsReplacedByWhatTheProcessorHas) {
  EXPECT_EQ(BetterBlasKernels("Prescott", true, true), "SkylakeX");
  EXPECT_EQ(BetterBlasKernels("Prescott", true, false), "Haswell");
  EXPECT_EQ(BetterBlasKernels("Prescott", false, false), "");
}

TEST(BlasKernelsTest, WhatOpenBlasKnowsIsLeftToIt) {
  EXPECT_EQ(BetterBlasKernels("Zen", true, false), "");
  EXPECT_EQ(BetterBlasKernels("SapphireRapids", true, true), "");
  EXPECT_EQ(BetterBlasKernels("", true, true), "");
}

TEST(BlasKernelsTest, WhatTheUserNamesStays) {
  setenv(kBlasKernelsVariable, "Prescott", 1);
  PassOnBlasKernels();
  EXPECT_STREQ(std::getenv(kBlasKernelsVariable), "Prescott");
  EXPECT_EQ(BetterBlasKernels(), "");
  unsetenv(kBlasKernelsVariable);
}

// Either OpenBLAS knows this processor and nothing is set, or what is set is what it then takes.
TEST(BlasKernelsTest, WhatIsPassedOnIsTaken) {
  unsetenv(kBlasKernelsVariable);
  const std::string better = BetterBlasKernels();
  PassOnBlasKernels();
  const char* named = std::getenv(kBlasKernelsVariable);
  EXPECT_EQ(named != nullptr ? named : "", better);
  if (named != nullptr) {
    EXPECT_EQ(BlasKernels(), better);
  }
  unsetenv(kBlasKernelsVariable);
}

}  // namespace
}  // namespace dynamix
