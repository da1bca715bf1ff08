#include <pybind11/pybind11.h>

#include "dynamix/core/input_error.h"
#include "python/bindings/bindings.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "DYNAMIX's C++ library; use the package dynamix.";
  pybind11::register_exception<dynamix::InputError>(module, "InputError", PyExc_ValueError).doc() =
      "Bad input. Names the field, the value and what is allowed.";
  dynamix::BindCore(module);
  dynamix::BindWindow(module);
  dynamix::BindPolicies(module);
  dynamix::BindClient(module);
  dynamix::BindSimulator(module);
  dynamix::BindRecord(module);
  dynamix::BindTestbed(module);
}
