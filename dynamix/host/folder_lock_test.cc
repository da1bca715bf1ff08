#include "dynamix/host/folder_lock.h"

#include <gtest/gtest.h>

#include <optional>

namespace dynamix {
namespace {

TEST(FolderLockTest, OneAtATimeAndNoFileIsLeft) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "dynamix_folder_lock" / "run";
  std::optional<FolderLock> first(std::in_place);
  EXPECT_TRUE(first->Take(folder));
  FolderLock second;
  EXPECT_FALSE(second.Take(folder));
  first.reset();
  EXPECT_TRUE(second.Take(folder));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder.parent_path());
}

TEST(FolderLockTest, WhatCannotBeLockedIsFree) {
  FolderLock lock;
  EXPECT_TRUE(lock.Take("/proc/nowhere"));
}

}  // namespace
}  // namespace dynamix
