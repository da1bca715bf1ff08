#include "dynamix/monitor/nvml.h"

#include <gtest/gtest.h>

#include "dynamix/monitor/monitor.h"

namespace dynamix {
namespace {

TEST(NvmlTest, ReadsUseAndMemoryThroughTheLibrary) {
  auto nvml = Nvml::Open(0, DYNAMIX_NVML_STAND_IN);
  ASSERT_TRUE(nvml.ok()) << nvml.error();
  const DeviceWindow window = nvml.value().Read();
  EXPECT_DOUBLE_EQ(window.use, 0.87);
  EXPECT_EQ(window.memory_used_bytes, 15.0 * (1 << 30));
  EXPECT_EQ(window.memory_limit_bytes, 16.0 * (1 << 30));
  EXPECT_TRUE(IsMissing(nvml.value().Read().use)) << "refused by the driver this time";
}

TEST(NvmlTest, AbsentLibraryAndAbsentDeviceAreErrors) {
  EXPECT_FALSE(Nvml::Open(0, "libdoes-not-exist.so.1").ok());
  EXPECT_FALSE(Nvml::Open(1, DYNAMIX_NVML_STAND_IN).ok());
  EXPECT_FALSE(Nvml::Open(-1, DYNAMIX_NVML_STAND_IN).ok());
}

TEST(NvmlTest, AFullDeviceIsTheNearestMemoryLimit) {
  MonitorOptions options;
  options.best_tier = NetworkTier::kNone;
  options.device = 0;
  options.device_library = DYNAMIX_NVML_STAND_IN;
  Monitor monitor = Monitor::Start(options);
  EXPECT_EQ(monitor.ReadWindow().HostPart().memory_limit_bytes, 16.0 * (1 << 30));
}

TEST(NvmlTest, AMissingDeviceIsSaidOnceAndTheHostIsStillMeasured) {
  MonitorOptions options;
  options.best_tier = NetworkTier::kNone;
  options.device = 5;
  options.device_library = DYNAMIX_NVML_STAND_IN;
  int sentences = 0;
  options.say = [&](const std::string& sentence) {
    sentences += sentence.starts_with("device metrics: none") ? 1 : 0;
  };
  Monitor monitor = Monitor::Start(options);
  EXPECT_GT(monitor.ReadWindow().HostPart().memory_limit_bytes, 0);
  monitor.ReadWindow();
  EXPECT_EQ(sentences, 1);
}

}  // namespace
}  // namespace dynamix
