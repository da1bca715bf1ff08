#include "dynamix/host/blas_kernels.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

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

// LD_LIBRARY_PATH is read when a program starts: the test runs itself beside a library that is none.
TEST(BlasKernelsTest, ADamagedLibraryIsNoLibrary) {
  if (std::getenv("DYNAMIX_TEST_DAMAGED") != nullptr) {
    EXPECT_EQ(BlasKernels(), "");
    return;
  }
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("blas-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string library = folder / "libblas.so.3";
  const std::string again = "LD_LIBRARY_PATH='" + folder.string() +
                            "' DYNAMIX_TEST_DAMAGED=1 /proc/" + std::to_string(getpid()) +
                            "/exe --gtest_filter=*ADamagedLibraryIsNoLibrary > '" +
                            (folder / "log").string() + "' 2>&1";
  // The head of this program: sections and segments it names are not there.
  std::ifstream own("/proc/self/exe", std::ios::binary);
  std::string head(8192, 0);
  own.read(head.data(), static_cast<std::streamsize>(head.size()));
  std::ofstream(library, std::ios::binary) << head;
  EXPECT_EQ(std::system(again.c_str()), 0);
  std::filesystem::remove(library);
  ASSERT_EQ(mkfifo(library.c_str(), 0600), 0);
  EXPECT_EQ(std::system(again.c_str()), 0);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dynamix
