#include "dynamix/training/in_process_advisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamix/core/input_error.h"
#include "dynamix/core/testing/filled_report.h"

namespace dynamix {
namespace {

// Each round adds one to the batch: advice depends on all rounds so far.
struct Own {
  WorkerGroup alone;
  int decided = 0;
  InProcessAdvisor advisor{alone,
                           {},
                           [this](const Round& round) {
                             return std::vector<int>{round.entries.front().batch + ++decided};
                           },
                           {},
                           [this](Memory& memory) { memory(decided); }};
};

TEST(InProcessAdvisorTest, GoesOnWithWhatWasRemembered) {
  Own first, second;
  const RoundEntry entry = FilledEntry();
  for (const std::int64_t window : {0, 1}) ASSERT_TRUE(first.advisor.Submit(window, entry).ok());
  ASSERT_TRUE(second.advisor.Restore(first.advisor.Save()).ok());
  EXPECT_EQ(second.decided, 2) << "no round is decided again";
  EXPECT_EQ(second.advisor.Poll().batch, entry.batch + 2) << "advice given but not taken";
  EXPECT_EQ(second.advisor.Save(), first.advisor.Save());
  ASSERT_TRUE(second.advisor.Submit(2, entry).ok());
  EXPECT_EQ(second.advisor.Poll().batch, entry.batch + 3);
}

TEST(InProcessAdvisorTest, TheStateOfALongJobIsAsSmallAsThatOfAShortOne) {
  Own own;
  ASSERT_TRUE(own.advisor.Submit(0, FilledEntry()).ok());
  const std::size_t size = own.advisor.Save().size();
  for (std::int64_t window = 1; window < 100; ++window)
    ASSERT_TRUE(own.advisor.Submit(window, FilledEntry()).ok());
  EXPECT_EQ(own.advisor.Save().size(), size);
}

TEST(InProcessAdvisorTest, BeforeTheFirstRoundAndAfterARemoteAdvisorItStartsAnew) {
  for (const char* state : {"", "9007199254740991"}) {
    Own own;
    ASSERT_TRUE(own.advisor.Restore(state).ok());
    EXPECT_FALSE(own.advisor.Poll().batch.has_value());
  }
  Own first, second;
  ASSERT_TRUE(second.advisor.Restore(first.advisor.Save()).ok());
  EXPECT_FALSE(second.advisor.Poll().batch.has_value());
}

TEST(InProcessAdvisorTest, AStateOfAnotherVersionIsRefused) {
  Own first, second;
  ASSERT_TRUE(first.advisor.Submit(0, FilledEntry()).ok());
  const std::string state = first.advisor.Save();
  for (const std::string& wrong :
       {state.substr(1), state.substr(0, state.size() - sizeof(double)),
        state + std::string(sizeof(double), '\0'), std::string(64, '\0')})
    EXPECT_THROW((void)second.advisor.Restore(wrong), InputError);
}

}  // namespace
}  // namespace dynamix
