#include "dynamix/job/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamix/core/input_error.h"

namespace dynamix {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::string_view kQuadratic = R"(
scales_with_workers = 8
[cost]
sample_ms = 0.5
[model]
name = "vgg11"
[optimizer]
kind = "adam"
base_batch = 256
rule = "sqrt"
[convergence]
engine = "quadratic"
noise_scale = 80
[target]
accuracy = 0.9
)";

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

TEST(WorkloadTest, ReadsBothEngines) {
  const Workload quadratic = ParseWorkload(kQuadratic, "q");
  ASSERT_TRUE(quadratic.is_quadratic());
  EXPECT_EQ(std::get<QuadraticOptions>(quadratic.convergence).noise_scale, 80);
  EXPECT_EQ(quadratic.optimizer.kind, OptimizerKind::kAdam);
  EXPECT_EQ(quadratic.optimizer.rule, LearningRateRule::kSqrt);
  const Workload miniature = ParseWorkload(kMiniature, "m");
  ASSERT_FALSE(miniature.is_quadratic());
  EXPECT_EQ(std::get<MiniatureOptions>(miniature.convergence).family, MiniatureFamily::kTeacher);
}

TEST(WorkloadTest, ReadsHowTransformersAreTrained) {
  const OptimizerOptions optimizer =
      ParseWorkload(
          "[optimizer]\nkind = 'adamw'\nweight_decay = 0.1\nschedule = 'warmup'\nclock = 'steps'\n"
          "[convergence]\nengine = 'quadratic'\n[target]\nloss = 2",
          "w")
          .optimizer;
  EXPECT_EQ(optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_TRUE(optimizer.adaptive());
  EXPECT_EQ(optimizer.weight_decay, 0.1);
  EXPECT_EQ(optimizer.schedule, Schedule::kWarmup);
  EXPECT_EQ(optimizer.clock, ScheduleClock::kSteps);
}

TEST(WorkloadTest, WhatIsWrittenReadsBackTheSame) {
  for (const std::string_view text : {kQuadratic, kMiniature}) {
    const std::string written = FormatWorkload(ParseWorkload(text, "w"));
    EXPECT_EQ(FormatWorkload(ParseWorkload(written, "again")), written);
  }
}

TEST(WorkloadTest, AJobThatScalesKeepsItsRatios) {
  const Workload job = ParseWorkload(kQuadratic, "q");
  const Workload large = job.OnWorkers(32);
  EXPECT_EQ(large.optimizer.base_batch, 1024);
  EXPECT_EQ(large.optimizer.planned_samples, 4 * job.optimizer.planned_samples);
  EXPECT_EQ(std::get<QuadraticOptions>(large.convergence).noise_scale, 320);
  EXPECT_EQ(large.OnWorkers(64).optimizer.base_batch, 1024) << "scaled once";
}

TEST(WorkloadTest, RefusesWhatCannotBe) {
  const auto refuse = [](std::string_view text, const std::string& message) {
    EXPECT_THAT([&] { ParseWorkload(text, "w.toml"); },
                ThrowsMessage<InputError>(HasSubstr(message)));
  };
  refuse("", "exactly one of accuracy, loss, run_share");
  refuse("[target]\naccuracy = 0.9\nloss = 1", "target has 2 values above 0");
  refuse("[convergence]\nfamily = 'teacher'", "convergence.engine is missing");
  refuse("[convergence]\nengine = 'quadratic'\nhidden = 3",
         "convergence.hidden is not a known key");
  refuse("[convergence]\nengine = 'magic'", "expected one of quadratic miniature");
  refuse("[optimizer]\nmomentum = 1.5", "optimizer.momentum = 1.5");
  refuse("[optimizer]\nkind = 'adam'\nweight_decay = 0.1\n[target]\nloss = 1",
         "optimizer.weight_decay = 0.1 is not allowed: expected 0 unless optimizer.kind is adamw");
  refuse("[convergence]\nengine = 'quadratic'\nbest_accuracy = 0.05\n[target]\nloss = 1",
         "best_accuracy = 0.05");
  refuse("scales_with_workers = 8\n[convergence]\nengine = 'miniature'\n[target]\nloss = 1",
         "scales_with_workers = 8");
}

}  // namespace
}  // namespace dynamix
