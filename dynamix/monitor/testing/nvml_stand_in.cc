// Stands in for libnvidia-ml.so.1 in tests: one device, whose use the driver refuses on the second
// read. The names and layouts are NVML's.
namespace {
int reads = 0;
int device_zero = 0;
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  if (index != 0) return 2;  // NVML_ERROR_INVALID_ARGUMENT
  *device = &device_zero;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned int utilization[2]) {
  if (device != &device_zero || ++reads == 2) return 3;  // NVML_ERROR_NOT_SUPPORTED
  utilization[0] = 87;
  utilization[1] = 12;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long memory[3]) {
  if (device != &device_zero) return 3;
  memory[0] = 16ULL << 30;
  memory[1] = 1ULL << 30;
  memory[2] = 15ULL << 30;
  return 0;
}
}
