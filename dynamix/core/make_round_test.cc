#include "dynamix/core/make_round.h"

#include <gtest/gtest.h>

#include "dynamix/core/testing/filled_report.h"

namespace dynamix {
namespace {

TEST(MakeRoundTest, RepeatsTheSettingsAndLastsAsLongAsTheLongestWindow) {
  std::vector<RoundEntry> entries(3, FilledEntry());
  entries[0].report->iteration_ms = 20;
  entries[0].report->iterations = 10;
  entries[1].report->iteration_ms = kMissing;
  entries[2].report.reset();
  const Round round = MakeRound(7, {.base_batch = 96, .target_loss = 1.5}, entries);
  EXPECT_EQ(round.index, 7);
  EXPECT_EQ(round.base_batch, 96);
  EXPECT_EQ(round.target_loss, 1.5);
  EXPECT_EQ(round.entries.size(), 3u);
  EXPECT_DOUBLE_EQ(round.seconds, 0.2);
  EXPECT_DOUBLE_EQ(MakeRound(0, {}, {}).seconds, 1e-6);
}

TEST(MakeRoundTest, PackingKeepsEveryField) {
  RoundEntry entry = FilledEntry();
  for (const bool active : {true, false}) {
    entry.active = active;
    const std::vector<double> packed = PackEntry(entry);
    ASSERT_EQ(packed.size(), static_cast<std::size_t>(kPackedEntry));
    EXPECT_EQ(FieldsOf(UnpackEntry(packed.data())), FieldsOf(entry));
  }
}

TEST(MakeRoundTest, PackingKeepsWhatIsMissing) {
  RoundEntry entry = FilledEntry();
  entry.report->training = {};
  EXPECT_TRUE(IsMissing(UnpackEntry(PackEntry(entry).data()).report->training.loss));
}

}  // namespace
}  // namespace dynamix
