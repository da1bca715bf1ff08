#include "dynamix/core/report_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "dynamix/core/testing/filled_report.h"

namespace dynamix {
namespace {

// Becomes any member, so that the members of an aggregate can be counted.
struct Anything {
  template <typename Member>
  operator Member() const {
    return {};
  }
};

template <typename Struct, typename... Found>
constexpr int Members() {
  if constexpr (requires { Struct{Found{}..., Anything{}}; })
    return Members<Struct, Found..., Anything>();
  else
    return sizeof...(Found);
}

int Listed(const std::string& section) {
  int count = 0;
  for (const auto& [name, value] : FieldsOf(FilledReport())) count += name.starts_with(section);
  return count;
}

TEST(ReportFieldsTest, EveryMemberIsListed) {
  EXPECT_EQ(Listed("."), Members<Report>() - 3) << "without network, host and training";
  EXPECT_EQ(Listed("network."), Members<NetworkReport>());
  EXPECT_EQ(Listed("host."), Members<HostReport>());
  EXPECT_EQ(Listed("training."), Members<TrainingReport>());
  const int own = Members<RoundEntry>() - 2;  // without bounds and report
  EXPECT_EQ(kEntryFields, own + Members<BatchBounds>() + Listed(""));
}

TEST(ReportFieldsTest, EveryFieldHasItsOwnNameAndARange) {
  std::set<std::string> names;
  const Report report;
  VisitFields(report, [&](const ReportField& field, const auto&) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_LT(field.low, field.high) << field.name;
  });
}

TEST(ReportFieldsTest, ClippingKeepsWhatCanBeAndWhatIsMissing) {
  EXPECT_EQ(Clip(0.25, 0, 1), 0.25);
  EXPECT_EQ(Clip(1e300, 0, 1), 1);
  EXPECT_EQ(Clip(-1e300, 0, 1), 0);
  EXPECT_TRUE(IsMissing(Clip(kMissing, 0, 1)));
  EXPECT_TRUE(IsMissing(Clip(HUGE_VAL, 0, 1))) << "not a measurement, however large";
}

}  // namespace
}  // namespace dynamix
