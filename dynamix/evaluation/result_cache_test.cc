#include "dynamix/evaluation/result_cache.h"

#include <gtest/gtest.h>

#include <fstream>

namespace dynamix {
namespace {

namespace fs = std::filesystem;

class ResultCacheTest : public testing::Test {
 protected:
  ResultCacheTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
  }
  ~ResultCacheTest() override { fs::remove_all(folder_); }

  fs::path OnlyFile() const { return fs::directory_iterator(folder_)->path(); }

  fs::path folder_;
  RunKey key_{
      .job = "job\n", .policy = "balanced", .version = "1-ab", .label = "judge-07-balanced"};
};

JobResult Finished() {
  JobResult result;
  result.scenario = "judge-07";
  result.workload = "cnn_fashion_mnist";
  result.policy = "balanced";
  result.workers = 16;
  result.seed = 200007;
  result.time_to_target_s = 12.345678901234567;
  result.reached = true;
  result.samples = 31234;
  result.final_accuracy = 0.81;
  result.mean_wait_share = 0.1;
  result.windows = 42;
  result.first_global_batch = 128;
  result.last_global_batch = 200;
  result.curve = {{0.5, 1280, 2.25, 0.125}, {1.0, 2560, 1.75, 0.25}};
  return result;
}

TEST_F(ResultCacheTest, GivesBackWhatItKept) {
  const ResultCache cache(folder_);
  EXPECT_FALSE(cache.Find(key_));
  cache.Keep(key_, Finished());
  const auto found = ResultCache(folder_).Find(key_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->scenario, "judge-07");
  EXPECT_EQ(found->workload, "cnn_fashion_mnist");
  EXPECT_EQ(found->policy, "balanced");
  EXPECT_EQ(found->workers, 16);
  EXPECT_EQ(found->seed, 200007);
  EXPECT_EQ(found->time_to_target_s, 12.345678901234567);
  EXPECT_TRUE(found->reached);
  EXPECT_EQ(found->samples, 31234);
  EXPECT_EQ(found->final_accuracy, 0.81);
  EXPECT_EQ(found->mean_wait_share, 0.1);
  EXPECT_EQ(found->windows, 42);
  EXPECT_EQ(found->first_global_batch, 128);
  EXPECT_EQ(found->last_global_batch, 200);
  ASSERT_EQ(found->curve.size(), 2u);
  EXPECT_EQ(found->curve[1].seconds, 1.0);
  EXPECT_EQ(found->curve[1].samples, 2560);
  EXPECT_EQ(found->curve[1].loss, 1.75);
  EXPECT_EQ(found->curve[1].accuracy, 0.25);
}

TEST_F(ResultCacheTest, AnotherJobPolicyOrVersionIsNotTheSameRun) {
  const ResultCache cache(folder_);
  cache.Keep(key_, Finished());
  for (std::string RunKey::*field : {&RunKey::job, &RunKey::policy, &RunKey::version}) {
    RunKey other = key_;
    other.*field += "x";
    EXPECT_FALSE(cache.Find(other));
  }
  RunKey renamed = key_;
  renamed.label = "judge-07-another name";
  EXPECT_FALSE(cache.Find(renamed));  // looks into another file
}

TEST_F(ResultCacheTest, AFileThatWasCutOffOrIsOfAnotherKeyIsAsGoodAsNone) {
  const ResultCache cache(folder_);
  cache.Keep(key_, Finished());
  const fs::path file = OnlyFile();
  EXPECT_TRUE(file.filename().string().starts_with("judge-07-balanced-")) << file;
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_FALSE(cache.Find(key_));
  std::ofstream(file) << R"({"key": {"job": "", "policy": "", "version": ""}, "result": {}})";
  EXPECT_FALSE(cache.Find(key_));
  cache.Keep(key_, Finished());
  EXPECT_TRUE(cache.Find(key_));
}

TEST_F(ResultCacheTest, WithoutAFolderNothingIsKept) {
  const ResultCache cache("");
  cache.Keep(key_, Finished());
  EXPECT_FALSE(cache.Find(key_));
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(ResultCacheTest, SaysWhichFileItCannotWrite) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "file") << "not a folder";
  EXPECT_THROW(ResultCache(folder_ / "file").Keep(key_, Finished()), std::exception);
}

}  // namespace
}  // namespace dynamix
