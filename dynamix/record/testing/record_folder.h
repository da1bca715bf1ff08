// For tests of records: a folder of its own for each, removed at the end, and a disk that is full.
// Test code only.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace dynamix {

class RecordFolderTest : public testing::Test {
 protected:
  RecordFolderTest() { std::filesystem::remove_all(folder_); }
  ~RecordFolderTest() override { std::filesystem::remove_all(folder_); }

  static void Write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) /
      ("dynamix_record_" + std::to_string(getpid()) + "_" +
       testing::UnitTest::GetInstance()->current_test_info()->name());
};

// What a full disk does, without one: writes past the limit are cut short, then refused.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  const rlimit& before() const { return before_; }  // for a disk with room again

 private:
  rlimit before_{};
  sighandler_t handler_;
};

}  // namespace dynamix
