#include "dynamix/simulator/engine.h"

#include <gtest/gtest.h>

namespace dynamix {
namespace {

constexpr std::string_view kMiniature = R"(
[optimizer]
learning_rate = 0.03
[convergence]
engine = "miniature"
family = "teacher"
inputs = 32
hidden = 16
[target]
run_share = 0.7
)";

TEST(EngineTest, HasTheWorkloadsOptimizer) {
  const MiniaturePools pools{.fashion = nullptr, .gaussian = MakeGaussianPool(1)};
  const auto engine = MakeConvergence(ParseWorkload(kMiniature, "m"), pools, 1);
  EXPECT_NEAR(engine->Run({64, 64}, 1).learning_rate, 0.03, 1e-9);
}

}  // namespace
}  // namespace dynamix
