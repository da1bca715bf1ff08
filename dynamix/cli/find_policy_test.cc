#include "dynamix/cli/find_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A data folder with two policies that nobody could load.
class FindPolicyTest : public testing::Test {
 protected:
  FindPolicyTest()
      : folder_(fs::path(testing::TempDir()) / ("policies-" + std::to_string(getpid()))) {
    for (const char* part : {"scenarios", "workloads", "policies"})
      fs::create_directories(folder_ / part);
    for (const char* name : {"zebra", "ape"})
      std::ofstream(folder_ / "policies" / (std::string(name) + ".safetensors")) << "not a policy";
    setenv("DYNAMIX_DATA", folder_.c_str(), 1);
  }
  ~FindPolicyTest() override {
    unsetenv("DYNAMIX_DATA");
    fs::remove_all(folder_);
  }

  static std::string Complaint(const std::string& name) {
    try {
      FindPolicy(name);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  fs::path folder_;
};

TEST_F(FindPolicyTest, AMisspeltNameIsAnsweredWithEveryRuleAndEveryShippedPolicy) {
  EXPECT_EQ(
      Complaint("balancd"),
      "policy = balancd is not allowed: expected a file, or one of: "
      "ape, balanced, base, composite, goodput, noise_scale, static, static:N, zebra; did you mean "
      "balanced?");
}

TEST_F(FindPolicyTest, RulesNeedNoFile) {
  EXPECT_EQ(FindPolicy("static:16").make()->name(), "static:16");
  EXPECT_EQ(Complaint("balanced"), "");
}

TEST_F(FindPolicyTest, AnyPolicyCanBeEvaluatedWithTheGuard) {
  const std::vector<PolicySpec> specs = FindPolicies("static:16,guarded:static:16");
  ASSERT_EQ(specs.size(), 2u);
  const PolicySpec& guarded = specs[1];
  EXPECT_TRUE(guarded.guarded);
  EXPECT_EQ(guarded.name, "guarded:static:16") << "a row of its own in tables";
  EXPECT_EQ(guarded.make()->name(), "static:16");
  EXPECT_FALSE(specs[0].guarded);
  EXPECT_THROW(FindPolicies("guarded:balancd"), InputError);
  EXPECT_THAT(Complaint("guarded:balanced"), HasSubstr("--no-guard")) << "training has a flag";
  EXPECT_THAT(Complaint("steps:balanced"), HasSubstr("--clock steps"));
}

TEST_F(FindPolicyTest, AnyPolicyCanBeEvaluatedWithSchedulesByStepsAndWithBoth) {
  const std::vector<PolicySpec> specs = FindPolicies("steps:balanced,guarded:steps:balanced");
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_TRUE(specs[0].steps && !specs[0].guarded);
  EXPECT_TRUE(specs[1].steps && specs[1].guarded);
  EXPECT_EQ(specs[1].name, "guarded:steps:balanced");
  EXPECT_EQ(specs[1].make()->name(), "balanced");
  EXPECT_THROW(FindPolicies("steps:guarded:balanced"), InputError) << "one spelling of it";
}

TEST_F(FindPolicyTest, AFileThatIsRefusedIsNamedWithTheReason) {
  EXPECT_THAT(Complaint("ape"), HasSubstr("ape.safetensors' is refused"));
}

TEST_F(FindPolicyTest, AFolderIsNotAPolicy) {
  EXPECT_THAT(Complaint(folder_.string()), HasSubstr("is not allowed"));
}

}  // namespace
}  // namespace dynamix
