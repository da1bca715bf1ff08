// GPU use and memory through NVML, loaded at run time: no build or run needs the library.
//
// One thread at a time per object. Where there is no library, no driver or no such device, Open is
// an Error, and a single value that the driver refuses is kMissing. Reading takes what the driver
// has sampled (NVML documents a period between 1/6 and 1 s).
#pragma once

#include <memory>
#include <string>

#include "dynamix/core/report.h"
#include "dynamix/core/result.h"

namespace dynamix {

struct DeviceWindow {
  double use = kMissing;  // share of the driver's sample period with a kernel running, [0, 1]
  double memory_used_bytes = kMissing;
  double memory_limit_bytes = kMissing;
};

class Nvml {
 public:
  // `device`: index as NVML counts, >= 0.
  static Result<Nvml> Open(int device, const std::string& library = "libnvidia-ml.so.1");
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();

  DeviceWindow Read() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace dynamix
