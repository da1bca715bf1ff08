#include "dynamix/ppo/policy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "dynamix/host/atomic_file.h"
#include "dynamix/ppo/model_tensors.h"
#include "dynamix/ppo/tensor_file.h"
#include "dynamix/ppo/testing/small_policy.h"

namespace dynamix {
namespace {

using testing::HasSubstr;

// A folder of its own for each test.
class PolicyFileTest : public testing::Test {
 protected:
  PolicyFileTest() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("dynamix_policy_") + test->name() + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~PolicyFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const char* name = "p.safetensors") const { return folder_ / name; }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::size_t FileCount() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++count;
    return count;
  }

  std::filesystem::path folder_;
};

// The error of a file whose parts were changed and whose checksum is right again.
template <typename Change>
std::string ErrorAfter(const Change& change) {
  TensorFile file = DecodeTensors(EncodePolicy(SmallPolicy({2}, 1))).value();
  change(file);
  const Result<PolicyModel> model = DecodePolicy(EncodeTensors(file));
  return model ? "" : model.error();
}

// A file of these header and data bytes with the right checksum.
std::string Forge(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return Seal(bytes + header + data);
}

const std::string kSealed = R"("__metadata__":{"sha256":")" + std::string(64, '0') + R"("})";

TEST_F(PolicyFileTest, APolicyThatWasMergedOfSeveralIsRefused) {
  const auto add_second_team = [](TensorFile& file) {
    PutModel("team2", *SmallPolicy({2}, 7).team, file);
  };
  EXPECT_THAT(ErrorAfter(add_second_team), HasSubstr("merged of several"));
  const auto add_its_tensors = [&](TensorFile& file) {
    add_second_team(file);
    file.metadata.erase("team2.shape");
  };
  EXPECT_THAT(ErrorAfter(add_its_tensors), HasSubstr("tensor 'team2."));
}

TEST_F(PolicyFileTest, LoadsWhatWasSaved) {
  const PolicyModel saved = SmallPolicy({3, 2}, 1);
  ASSERT_TRUE(SavePolicy(Path(), saved).ok());
  const Result<PolicyModel> loaded = LoadPolicy(Path());
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  for (const bool local : {true, false}) {
    const ActorCritic& a = local ? *saved.local : *saved.team;
    const ActorCritic& b = local ? *loaded.value().local : *loaded.value().team;
    EXPECT_EQ(a.network.shape(), b.network.shape());
    EXPECT_TRUE(std::ranges::equal(a.network.parameters(), b.network.parameters()));
    EXPECT_EQ(a.actor_inputs, b.actor_inputs);
    EXPECT_EQ(a.returns, b.returns);
  }
  EXPECT_EQ(loaded.value().training, saved.training);
  EXPECT_EQ(Format(loaded.value().actions), Format(saved.actions));
  EXPECT_EQ(EncodePolicy(loaded.value()), EncodePolicy(saved));
}

TEST_F(PolicyFileTest, OneHeadAloneIsAPolicyToo) {
  PolicyModel model = SmallPolicy({2}, 1);
  model.actions.team = false;
  model.team.reset();
  const Result<PolicyModel> loaded = DecodePolicy(EncodePolicy(model));
  ASSERT_TRUE(loaded.ok()) << loaded.error();
  EXPECT_FALSE(loaded.value().team.has_value());
}

TEST_F(PolicyFileTest, AnyFlippedByteIsRefused) {
  const std::string good = EncodePolicy(SmallPolicy({1}, 1));
  ASSERT_TRUE(DecodePolicy(good).ok());
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char flip : {'\x01', '\x20', '\x80', '\xff'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      const Result<PolicyModel> model = DecodePolicy(bad);
      ASSERT_FALSE(model.ok()) << "byte " << i << " of " << good.size();
      ASSERT_FALSE(model.error().empty());
    }
  }
}

TEST_F(PolicyFileTest, AnyTruncationIsRefused) {
  const std::string good = EncodePolicy(SmallPolicy({1}, 1));
  for (std::size_t length = 0; length < good.size(); ++length)
    ASSERT_FALSE(DecodePolicy(std::string_view(good).substr(0, length)).ok()) << length;
  EXPECT_FALSE(DecodePolicy(good + "x").ok());
}

TEST_F(PolicyFileTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorAfter([](TensorFile& f) { f.metadata["version"] = "2"; }),
              HasSubstr("version '2' is not known"));
  EXPECT_THAT(ErrorAfter([](TensorFile& f) { f.metadata["features"] = "0123456789abcdef"; }),
              HasSubstr("made for feature list 0123456789abcdef"));
  EXPECT_THAT(ErrorAfter([](TensorFile& f) { f.metadata["format"] = "other"; }),
              HasSubstr("not a policy file"));
  EXPECT_THAT(ErrorAfter([](TensorFile& f) { f.metadata["actions"] = "sideways"; }),
              HasSubstr("actions"));
  EXPECT_THAT(ErrorAfter([](TensorFile& f) { f.metadata.erase("team.shape"); }),
              HasSubstr("team head"));
  EXPECT_THAT(ErrorAfter([](TensorFile& f) { f.tensors.erase("local.value.0.bias"); }),
              HasSubstr("'local.value.0.bias' is missing"));
  EXPECT_THAT(
      ErrorAfter([](TensorFile& f) {
        f.metadata["local.shape"] =
            R"({"actor_inputs":4096,"critic_inputs":4096,"hidden":[4096,4096],"heads":[5]})";
      }),
      HasSubstr("more weights than the file holds"));
  EXPECT_THAT(ErrorAfter([](TensorFile& f) {
                f.metadata["local.shape"] =
                    R"({"actor_inputs":-3,"critic_inputs":0,"hidden":[2],"heads":[5]})";
              }),
              HasSubstr("local.shape"));
  EXPECT_THAT(ErrorAfter([](TensorFile& f) {
                f.metadata["local.columns_off"] = R"({"actor":[4000],"critic":[]})";
              }),
              HasSubstr("columns_off"));
  EXPECT_THAT(ErrorAfter([](TensorFile& f) {
                std::get<std::vector<double>>(f.tensors["team.returns"].data)[2] = -1;
              }),
              HasSubstr("impossible count or variance"));
}

TEST_F(PolicyFileTest, NumbersThatAreNoneAreRefused) {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    PolicyModel model = SmallPolicy({2}, 1);
    model.local->network.parameters()[5] = bad;
    const Result<PolicyModel> loaded = DecodePolicy(EncodePolicy(model));
    ASSERT_FALSE(loaded.ok());
    EXPECT_THAT(loaded.error(), HasSubstr("non-finite"));
  }
  PolicyModel model = SmallPolicy({2}, 1);
  model.local->actor_inputs.columns()[0].mean = std::nan("");
  EXPECT_FALSE(DecodePolicy(EncodePolicy(model)).ok());
}

TEST_F(PolicyFileTest, HugeHeadersAreRefusedBeforeTheyAreRead) {
  for (const std::uint64_t length :
       {std::uint64_t{kMaxHeaderBytes} + 1, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    std::string bytes(100, ' ');
    std::memcpy(bytes.data(), &length, sizeof(length));
    const Result<TensorFile> file = DecodeTensors(bytes);
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(file.error(), HasSubstr("at most 1048576"));
  }
}

TEST_F(PolicyFileTest, ForgedLayoutsWithARightChecksumAreRefused) {
  const std::string sixteen(16, '\0');
  const std::string good =
      R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)" + kSealed + "}";
  ASSERT_TRUE(DecodeTensors(Forge(good, sixteen)).ok());
  const char* tensors[] = {
      R"("a":{"dtype":"F32","shape":[4],"data_offsets":[0,20]})",    // beyond the end
      R"("a":{"dtype":"F32","shape":[4],"data_offsets":[16,0]})",    // backwards
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})",     // leaves data over
      R"("a":{"dtype":"F32","shape":[4],"data_offsets":[0]})",       // too few
      R"("a":{"dtype":"F32","shape":[4],"data_offsets":[0.5,16]})",  // no integers
      R"("a":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]})",   // negative
      R"("a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,16]})",
      R"("a":{"dtype":"I8","shape":[16],"data_offsets":[0,16]})",  // unknown type
      R"("a":{"dtype":7,"shape":[4],"data_offsets":[0,16]})",
      R"("a":[1,2])",
      R"("a":null)",
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[4],"data_offsets":[0,16]})"};
  for (const char* tensor : tensors) {
    const std::string header = std::string("{") + tensor + "," + kSealed + "}";
    EXPECT_FALSE(DecodeTensors(Forge(header, sixteen)).ok()) << tensor;
  }
  EXPECT_FALSE(DecodeTensors(Forge("[" + kSealed + "]", "")).ok());
  EXPECT_FALSE(DecodeTensors(Forge("{", "")).ok());
  const std::string twice = "{" + kSealed + ",\"x\":{" + kSealed + "}}";
  EXPECT_FALSE(DecodeTensors(Forge(twice, "")).ok());
}

TEST_F(PolicyFileTest, KeepsTwoGenerations) {
  const PolicyModel first = SmallPolicy({2}, 1), second = SmallPolicy({2}, 2),
                    third = SmallPolicy({2}, 3);
  ASSERT_TRUE(SavePolicy(Path(), first).ok());
  ASSERT_TRUE(SavePolicy(Path(), second).ok());
  EXPECT_EQ(EncodePolicy(LoadPolicy(Path()).value()), EncodePolicy(second));
  EXPECT_EQ(EncodePolicy(LoadPolicy(PreviousGeneration(Path())).value()), EncodePolicy(first));
  EXPECT_EQ(FileCount(), 2u);

  Write(Path(), "damaged");  // not worth keeping: the good previous one stays
  ASSERT_TRUE(SavePolicy(Path(), third).ok());
  EXPECT_EQ(EncodePolicy(LoadPolicy(PreviousGeneration(Path())).value()), EncodePolicy(first));
}

TEST_F(PolicyFileTest, AFailedWriteLeavesNothingBehind) {
  const Status missing = SavePolicy(Path("no/such/folder.safetensors"), SmallPolicy({2}, 1));
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error(), HasSubstr("No such file"));
  std::filesystem::create_directories(Path("taken") + "/inside");
  EXPECT_FALSE(SavePolicy(Path("taken"), SmallPolicy({2}, 1)).ok());
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(PolicyFileTest, MissingFilesAndFoldersAreErrors) {
  EXPECT_THAT(LoadPolicy(Path("none")).error(), HasSubstr("No such file"));
  EXPECT_THAT(LoadPolicy(folder_).error(), HasSubstr("not a regular file"));
  Write(Path(), "");
  EXPECT_THAT(LoadPolicy(Path()).error(), HasSubstr("shorter than"));
}

TEST_F(PolicyFileTest, FreeTextMayHoldAnything) {
  PolicyModel model = SmallPolicy({2}, 1);
  model.training = {{"odd", "\xff\xfe not UTF-8 \"sha256\":\"x\""}, {"", ""}};
  EXPECT_TRUE(DecodePolicy(EncodePolicy(model)).ok());
}

}  // namespace
}  // namespace dynamix
