// The parts of the Python module `dynamix._core`. Each function adds its classes and functions to
// the module: convert, call, convert back. C++ exceptions become Python's: InputError a ValueError
// of the same name, everything else RuntimeError.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>

#include "dynamix/core/policy_spec.h"

namespace dynamix {

void BindCore(pybind11::module_& module);       // reports, rounds, sampler, noise scale, rates
void BindWindow(pybind11::module_& module);     // windows of all ranks, joined to a round
void BindPolicies(pybind11::module_& module);   // policies and the arbitrator's loop
void BindClient(pybind11::module_& module);     // advice over RPC, worker, monitor, rank's place
void BindSimulator(pybind11::module_& module);  // environments to learn in, evaluation
void BindRecord(pybind11::module_& module);     // runs on disk
void BindTestbed(pybind11::module_& module);    // ranks of an emulated cluster

// A rule, a shipped policy or a file by name; or a Python object with decide(round, states), or a
// class or function that makes one. Throws InputError for anything else.
PolicySpec ToPolicySpec(const pybind11::object& policy);

}  // namespace dynamix
