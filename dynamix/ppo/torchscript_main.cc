// dynamix-torchscript POLICY OUT: the helper behind `dynamix policy export --format torchscript`. A
// program of its own, because loading libtorch takes a second that no other command should pay.
#include <cstdio>

#include "dynamix/ppo/export.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s POLICY OUT\n", argv[0]);
    return 2;
  }
  const dynamix::Result<dynamix::PolicyModel> model = dynamix::LoadPolicy(argv[1]);
  const dynamix::Status status =
      model ? dynamix::ExportTorchScript(model.value(), argv[2]) : dynamix::Error{model.error()};
  if (!status) std::fprintf(stderr, "dynamix: %s\n", status.error().c_str());
  return status ? 0 : 1;
}
