#include "dynamix/arbitrator/arbitrator.h"

#include <gtest/gtest.h>

#include "dynamix/arbitrator/parallel.h"
#include "dynamix/arbitrator/testing/fake_job.h"

namespace dynamix {
namespace {

// Wants the team to grow once, then holds.
class GrowOnce : public Policy {
 public:
  std::string_view name() const override { return "grow_once"; }
  Decisions Decide(const Round& round, const States&, Rng&) override {
    Actions actions{round.index == 0 ? 4 : kHold, std::vector<int>(round.entries.size(), kHold)};
    return actions;
  }
  void Reset() override {}
};

TEST(ArbitratorTest, TurnsRoundsIntoBatchesThroughTheWholeLoop) {
  FakeJob job(3, 1e9, 1e9);
  Arbitrator arbitrator({"grow_once", {}, [] { return std::make_unique<GrowOnce>(); }});
  Round round = job.Reset();
  const double before = round.GlobalBatch();
  round = job.Step(arbitrator.Step(round, {}).sizes);
  EXPECT_NEAR(round.GlobalBatch(), 3 * before, 2);
  // Shares are speed-proportional at once: 1, 2 and 3.
  EXPECT_NEAR(round.entries[2].batch / static_cast<double>(round.entries[0].batch), 3, 0.1);
  const double grown = round.GlobalBatch();
  round = job.Step(arbitrator.Step(round, {}).sizes);
  EXPECT_NEAR(round.GlobalBatch(), grown, 2);
  EXPECT_EQ(arbitrator.Step(round, {}).states.workers, 3);
}

TEST(ParallelForTest, DoesEveryPieceOnceAndPassesOnAFailure) {
  std::vector<int> done(1000, 0);
  ParallelFor(1000, 4, [&](int i) { ++done[i]; });
  for (int count : done) EXPECT_EQ(count, 1);
  EXPECT_THROW(ParallelFor(100, 4,
                           [](int i) {
                             if (i == 37) throw std::runtime_error("piece 37");
                           }),
               std::runtime_error);
}

}  // namespace
}  // namespace dynamix
