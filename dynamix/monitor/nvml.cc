// The few entry points used, as nvml.h of the CUDA toolkit declares them (API version 2 symbols).
#include "dynamix/monitor/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace dynamix {
namespace {

constexpr int kSuccess = 0;  // NVML_SUCCESS
using Device = void*;        // nvmlDevice_t
struct Utilization {         // nvmlUtilization_t, per cent
  unsigned int gpu, memory;
};
struct Memory {  // nvmlMemory_t, bytes
  unsigned long long total, free, used;
};

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  bool started = false;
  Device device = nullptr;
  int (*start)() = nullptr;
  int (*stop)() = nullptr;
  int (*find_device)(unsigned int, Device*) = nullptr;
  int (*read_utilization)(Device, Utilization*) = nullptr;
  int (*read_memory)(Device, Memory*) = nullptr;

  template <typename Function>
  bool Find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(dlsym(handle, symbol));
    return function != nullptr;
  }

  ~Library() {
    if (started) stop();
    if (handle != nullptr) dlclose(handle);
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

Result<Nvml> Nvml::Open(int device, const std::string& library) {
  auto loaded = std::make_unique<Library>();
  loaded->handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded->handle == nullptr) return Error{"no NVML here: " + std::string(dlerror())};
  const bool complete = loaded->Find(loaded->start, "nvmlInit_v2") &&
                        loaded->Find(loaded->stop, "nvmlShutdown") &&
                        loaded->Find(loaded->find_device, "nvmlDeviceGetHandleByIndex_v2") &&
                        loaded->Find(loaded->read_utilization, "nvmlDeviceGetUtilizationRates") &&
                        loaded->Find(loaded->read_memory, "nvmlDeviceGetMemoryInfo");
  if (!complete) return Error{library + " lacks NVML functions"};
  if (const int refused = loaded->start(); refused != kSuccess)
    return Error{"NVML does not start: error " + std::to_string(refused)};
  loaded->started = true;
  if (device < 0 ||
      loaded->find_device(static_cast<unsigned int>(device), &loaded->device) != kSuccess)
    return Error{"NVML has no device " + std::to_string(device)};
  return Nvml(std::move(loaded));
}

DeviceWindow Nvml::Read() const {
  DeviceWindow window;
  Utilization utilization{};
  if (library_->read_utilization(library_->device, &utilization) == kSuccess)
    window.use = utilization.gpu / 100.0;
  Memory memory{};
  if (library_->read_memory(library_->device, &memory) == kSuccess) {
    window.memory_used_bytes = static_cast<double>(memory.used);
    window.memory_limit_bytes = static_cast<double>(memory.total);
  }
  return window;
}

}  // namespace dynamix
