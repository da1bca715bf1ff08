// Takes the place of export_torchscript.cc in a build without libtorch.
#include "dynamix/ppo/export.h"

namespace dynamix {

Status ExportTorchScript(const PolicyModel&, const std::string&) {
  return Error{"this build has no libtorch (DYNAMIX_WITH_TORCH=OFF); ONNX export works without it"};
}

}  // namespace dynamix
