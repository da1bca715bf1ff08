#include "dynamix/training/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "dynamix/core/input_error.h"
#include "dynamix/training/batch_reader.h"
#include "dynamix/training/cifar_file.h"
#include "dynamix/training/testing/sample_dataset.h"

namespace dynamix {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

class DatasetTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("dynamix_dataset_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void WriteCifar(const std::string& name, int images, int label_bytes, int label) {
    std::ofstream out(folder_ / name, std::ios::binary);
    for (int i = 0; i < images; ++i) {
      for (int b = 0; b < label_bytes; ++b) out.put(static_cast<char>(label));
      for (int p = 0; p < 3072; ++p) out.put(static_cast<char>(p < 1024 ? 10 : p < 2048 ? 20 : 30));
    }
  }

  static std::string ErrorOf(const std::function<void()>& call) {
    try {
      call();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(DatasetTest, ReadsFashionMnist) {
  if (!fs::exists(kFashionMnist)) GTEST_SKIP() << "needs the Debian package dataset-fashion-mnist";
  const Dataset data = LoadDataset("fashion_mnist", kFashionMnist);
  EXPECT_EQ(data.training.count(), 60000);
  EXPECT_EQ(data.held_out.count(), 10000);
  EXPECT_EQ(data.training.inputs.size(), 60000 * data.shape.size());
  // The numbers everybody normalises Fashion-MNIST with.
  EXPECT_NEAR(data.mean[0], 0.2860, 1e-4);
  EXPECT_NEAR(data.deviation[0], 0.3530, 1e-4);
}

TEST_F(DatasetTest, ATextIsCutIntoSequencesWithTheNextBytesAsLabels) {
  Dataset data;
  std::string text;
  for (int i = 0; i < 250; ++i) text += static_cast<char>(i);
  SetText(data, text, 10);
  EXPECT_EQ(data.classes, 256);
  // 225 bytes for training: 22 sequences of 10, and one byte at least for the last label.
  EXPECT_EQ(data.training.count(), 22);
  EXPECT_EQ(data.held_out.count(), 2);
  EXPECT_EQ(data.training.inputs[219], 219);
  EXPECT_EQ(data.training.labels[219], 220);
  EXPECT_EQ(data.held_out.inputs[0], 225);
  const auto shared = std::make_shared<const Dataset>(data);
  const BatchReader reader(shared, {}, 1);
  std::vector<std::int64_t> tokens(20), labels(20);
  reader.ReadTraining(std::vector<Sample>{{0, 3}, {1, 20}}, tokens.data(), labels.data());
  EXPECT_EQ(tokens[0], 30);
  EXPECT_EQ(labels[9], 40);
  EXPECT_EQ(tokens[10], 200);
  reader.ReadHeldOut(1, 1, tokens.data(), labels.data());
  EXPECT_EQ(tokens[0], 235);
  EXPECT_EQ(labels[0], 236);
}

TEST_F(DatasetTest, ATextWithAnotherChecksumIsRefused) {
  std::ofstream(folder_ / "bible.txt") << SampleWords(1000, Rng(1));
  EXPECT_THAT(ErrorOf([&] { LoadDataset("bible", folder_); }),
              testing::AllOf(HasSubstr("bible.txt: its sha256 is "), HasSubstr("expected b5c4940b"),
                             HasSubstr("run `scripts/fetch-text bible`")));
  EXPECT_THAT(ErrorOf([&] { LoadDataset("moby", folder_); }),
              testing::AllOf(HasSubstr("cannot read"), HasSubstr("moby.txt")));
}

TEST_F(DatasetTest, MissingFilesNameTheFileAndTheRemedy) {
  EXPECT_THAT(
      ErrorOf([&] { LoadDataset("fashion_mnist", folder_); }),
      testing::AllOf(HasSubstr("train-images-idx3-ubyte.gz"), HasSubstr("dataset-fashion-mnist")));
  EXPECT_THAT(ErrorOf([&] { LoadDataset("cifar10", folder_); }),
              testing::AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("scripts/fetch-cifar10")));
  EXPECT_THAT(ErrorOf([&] { LoadDataset("imagenet", folder_); }), HasSubstr("cifar100"));
}

TEST_F(DatasetTest, CifarFilesAreReadChannelByChannel) {
  WriteCifar("data.bin", 3, 1, 7);
  SampleSet set;
  AppendCifarFile(folder_ / "data.bin", CifarKind::kCifar10, 3, set);
  EXPECT_EQ(set.count(), 3);
  EXPECT_EQ(set.labels[2], 7);
  EXPECT_EQ(set.inputs[3072 + 0], 10);
  EXPECT_EQ(set.inputs[3072 + 1024], 20);
  WriteCifar("data.bin", 2, 2, 93);
  AppendCifarFile(folder_ / "data.bin", CifarKind::kCifar100, 2, set);
  EXPECT_EQ(set.labels[4], 93);
}

TEST_F(DatasetTest, TruncatedAndCorruptCifarFilesAreRefused) {
  WriteCifar("data.bin", 2, 1, 3);
  SampleSet set;
  const auto read = [&] { AppendCifarFile(folder_ / "data.bin", CifarKind::kCifar10, 3, set); };
  EXPECT_THAT(ErrorOf(read), testing::AllOf(HasSubstr("data.bin"), HasSubstr("6146 bytes")));
  WriteCifar("data.bin", 3, 1, 10);
  EXPECT_THAT(ErrorOf(read), HasSubstr("label 10"));
}

TEST(BatchReaderTest, NormalisesWithMeanAndDeviation) {
  const auto data = SampleDataset();
  const BatchReader reader(data, {}, 1);
  std::vector<float> inputs(64);
  std::int64_t label = 0;
  reader.ReadTraining(std::vector<Sample>{{0, 5}}, inputs.data(), &label);
  const float pixel = data->training.inputs[5 * 64 + 3] / 255.0f;
  EXPECT_FLOAT_EQ(inputs[3], (pixel - data->mean[0]) / data->deviation[0]);
  EXPECT_EQ(label, data->training.labels[5]);
}

TEST(BatchReaderTest, AugmentationFollowsThePositionAndOnlyMovesPixels) {
  const auto data = SampleDataset();
  const BatchReader plain(data, {}, 1), moved(data, {.crop = 2, .flip = true}, 1);
  std::vector<float> a(64), b(64), still(64);
  std::int64_t label = 0;
  plain.ReadTraining(std::vector<Sample>{{9, 5}}, still.data(), &label);
  int changed = 0;
  for (std::int64_t position = 0; position < 50; ++position) {
    moved.ReadTraining(std::vector<Sample>{{position, 5}}, a.data(), &label);
    moved.ReadTraining(std::vector<Sample>{{position, 5}}, b.data(), &label);
    EXPECT_EQ(a, b);
    changed += a != still;
    for (const float value : a)
      EXPECT_TRUE(value == 0 || std::find(still.begin(), still.end(), value) != still.end());
  }
  EXPECT_GT(changed, 40);
}

}  // namespace
}  // namespace dynamix
