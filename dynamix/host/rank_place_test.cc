#include "dynamix/host/rank_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

Variables Set(std::map<std::string, std::string> values) {
  return [values](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

TEST(RankPlaceTest, OneRankAloneWithoutVariables) {
  const RankPlace place = ReadRankPlace(Set({}));
  EXPECT_EQ(place.rank, 0);
  EXPECT_EQ(place.size, 1);
  EXPECT_FALSE(place.given);
  EXPECT_TRUE(ReadRankPlace(Set({{"RANK", "0"}, {"WORLD_SIZE", "1"}})).given);
}

TEST(RankPlaceTest, ReadsTorchrun) {
  const RankPlace place = ReadRankPlace(Set({{"RANK", "5"},
                                             {"WORLD_SIZE", "8"},
                                             {"LOCAL_RANK", "1"},
                                             {"MASTER_ADDR", "10.0.0.1"},
                                             {"MASTER_PORT", "1234"}}));
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.size, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.address, "10.0.0.1");
  EXPECT_EQ(place.port, 1234);
}

TEST(RankPlaceTest, ReadsTheFileOfTheLauncher) {
  EXPECT_EQ(ReadRankPlace(Set({})).store, "");
  EXPECT_EQ(ReadRankPlace(Set({{"DYNAMIX_STORE", "/tmp/a/store"}})).store, "/tmp/a/store");
}

TEST(RankPlaceTest, ReadsTheBackendAndRefusesAnUnknownOne) {
  EXPECT_EQ(ReadRankPlace(Set({})).backend, "gloo");
  EXPECT_EQ(ReadRankPlace(Set({{"DYNAMIX_BACKEND", "nccl"}})).backend, "nccl");
  EXPECT_THROW(ReadRankPlace(Set({{"DYNAMIX_BACKEND", "mpi"}})), InputError);
}

TEST(RankPlaceTest, ReadsSlurm) {
  const RankPlace place = ReadRankPlace(Set({{"SLURM_PROCID", "3"},
                                             {"SLURM_STEP_NUM_TASKS", "4"},
                                             {"SLURM_LOCALID", "0"},
                                             {"SLURM_STEP_NODELIST", "gpu[07-09,12]"},
                                             {"SLURM_JOB_ID", "123456"}}));
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.address, "gpu07");
  EXPECT_EQ(place.port, 23456);
}

// sbatch tells its script how many tasks a step would have, and gives it number 0.
TEST(RankPlaceTest, AProcessOfABatchScriptIsNoRank) {
  const RankPlace place = ReadRankPlace(Set({{"SLURM_PROCID", "0"},
                                             {"SLURM_NTASKS", "4"},
                                             {"SLURM_LOCALID", "0"},
                                             {"SLURM_JOB_NODELIST", "gpu[07-08]"},
                                             {"SLURM_JOB_ID", "123456"}}));
  EXPECT_FALSE(place.given);
  EXPECT_EQ(place.size, 1);
}

TEST(RankPlaceTest, TorchrunMayKeepTheStoreItself) {
  const auto read = [](const char* hosted) {
    return ReadRankPlace(Set({{"RANK", "0"},
                              {"WORLD_SIZE", "2"},
                              {"TORCHELASTIC_USE_AGENT_STORE", hosted},
                              {"TORCHELASTIC_RESTART_COUNT", "1"}}))
        .hosted;
  };
  EXPECT_EQ(read("True"), "dynamix/attempt_1");
  EXPECT_EQ(read("False"), "");
}

TEST(RankPlaceTest, ReadsOpenMpiOnOneMachineAndAsksForAnAddressOnSeveral) {
  EXPECT_EQ(ReadRankPlace(Set({{"OMPI_COMM_WORLD_RANK", "1"},
                               {"OMPI_COMM_WORLD_SIZE", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}))
                .rank,
            1);
  EXPECT_THROW(ReadRankPlace(Set({{"OMPI_COMM_WORLD_RANK", "1"},
                                  {"OMPI_COMM_WORLD_SIZE", "4"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})),
               InputError);
}

TEST(RankPlaceTest, BadValuesNameTheVariable) {
  try {
    ReadRankPlace(Set({{"RANK", "9"}, {"WORLD_SIZE", "8"}}));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("RANK = 9"));
  }
  EXPECT_THROW(ReadRankPlace(Set({{"RANK", "1x"}, {"WORLD_SIZE", "8"}})), InputError);
  EXPECT_THROW(ReadRankPlace(Set({{"RANK", "1"}})), InputError);
}

TEST(RankPlaceTest, FirstHostOfNodeLists) {
  EXPECT_EQ(FirstHost("alone"), "alone");
  EXPECT_EQ(FirstHost("a,b"), "a");
  EXPECT_EQ(FirstHost("a[3],b"), "a3");
  EXPECT_EQ(FirstHost("a,b[1-2]"), "a");
  EXPECT_EQ(FirstHost("rack[1-2]-x,b"), "rack1-x");
}

}  // namespace
}  // namespace dynamix
