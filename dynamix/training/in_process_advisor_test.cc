#include "dynamix/training/in_process_advisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamix/core/input_error.h"
#include "dynamix/core/testing/filled_report.h"

namespace dynamix {
namespace {

class OwnAdvisor {
 public:
  InProcessAdvisor Make() {
    return InProcessAdvisor(alone_, {}, [this](const Round& round) {
      ++decided_;
      return std::vector<int>{round.entries.front().batch + 1};
    });
  }
  int decided() const { return decided_; }

 private:
  WorkerGroup alone_;
  int decided_ = 0;
};

TEST(InProcessAdvisorTest, RestoringReplaysTheRounds) {
  OwnAdvisor own;
  InProcessAdvisor first = own.Make(), second = own.Make();
  const RoundEntry entry = FilledEntry();
  for (const std::int64_t window : {0, 1}) ASSERT_TRUE(first.Submit(window, entry).ok());
  ASSERT_TRUE(second.Restore(first.Save()).ok());
  EXPECT_EQ(own.decided(), 4);
  EXPECT_EQ(second.Poll().batch, entry.batch + 1);
  EXPECT_EQ(second.Save(), first.Save());
}

TEST(InProcessAdvisorTest, AStateOfOtherFieldsIsRefused) {
  OwnAdvisor own;
  InProcessAdvisor first = own.Make(), second = own.Make();
  ASSERT_TRUE(second.Restore("").ok()) << "before the first round there is no state";
  ASSERT_TRUE(first.Submit(0, FilledEntry()).ok());
  const std::string state = first.Save();
  EXPECT_THROW((void)second.Restore(state.substr(sizeof(double))), InputError);
  EXPECT_THROW((void)second.Restore(state.substr(0, state.size() - sizeof(double))), InputError);
}

}  // namespace
}  // namespace dynamix
