#include "dynamix/record/tensorboard_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "dynamix/record/testing/record_folder.h"

namespace dynamix {
namespace {

using testing::HasSubstr;
using testing::Not;

class TensorboardFileTest : public RecordFolderTest {
 protected:
  std::string Bytes() const {
    std::ifstream file(folder_ / "events.out.tfevents.1000.dynamix", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

// What TensorFlow's own writer puts at the beginning of a file of the second 1000.
TEST_F(TensorboardFileTest, BeginsAsTensorflowsDo) {
  const TensorboardFile file(folder_, 1000);
  const std::string length("\x18\0\0\0\0\0\0\0", 8);
  const std::string event =
      std::string("\x09\0\0\0\0\0\x40\x8f\x40", 9) + "\x1a\x0d" + "brain.Event:2";
  const std::string bytes = Bytes();
  ASSERT_EQ(bytes.size(), 8 + 4 + event.size() + 4);
  EXPECT_EQ(bytes.substr(0, 8), length);
  // The masked CRC-32C of that length: every file of TensorFlow's has it.
  EXPECT_EQ(bytes.substr(8, 4), "\xa3\x7f\x4b\x22");
  EXPECT_EQ(bytes.substr(12, event.size()), event);
}

TEST_F(TensorboardFileTest, ARoundIsThereAtOnceAndWhatWasNotMeasuredIsNot) {
  TensorboardFile file(folder_, 1000);
  RecordedRound round;
  round.index = 3;
  round.seconds = 12;
  round.accuracy = 0.5;
  round.loss = kMissing;
  round.batches = {16, 32};
  Report report{.iterations = 10};
  report.compute_ms = 4;
  round.workers = {report, Report{.iterations = 0}};
  file.Add(round);
  const std::string bytes = Bytes();
  const auto scalar = [](const std::string& tag, float value) {
    char number[4];
    std::memcpy(number, &value, 4);
    return tag + "\x15" + std::string(number, 4);
  };
  EXPECT_THAT(bytes, HasSubstr(scalar("held_out/accuracy", 0.5)));
  EXPECT_THAT(bytes, HasSubstr(scalar("batch/global", 48)));
  EXPECT_THAT(bytes, HasSubstr(scalar("batch/worker_1", 32)));
  EXPECT_THAT(bytes, HasSubstr(scalar("iteration/compute_ms", 4)));  // of who reported
  EXPECT_THAT(bytes, Not(HasSubstr("held_out/loss")));
  EXPECT_THAT(bytes, Not(HasSubstr("network/smoothed_rtt_us")));
}

}  // namespace
}  // namespace dynamix
