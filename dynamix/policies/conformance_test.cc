#include <gtest/gtest.h>

#include "dynamix/core/testing/policy_conformance.h"
#include "dynamix/policies/make_policy.h"

namespace dynamix {
namespace {

PolicyCase Rule(const std::string& name) {
  return {name, [name] { return MakePolicy(name); }};
}

INSTANTIATE_TEST_SUITE_P(Rules, PolicyConformance,
                         testing::Values(Rule("static"), Rule("static:64"), Rule("balanced"),
                                         Rule("base"), Rule("noise_scale"), Rule("goodput"),
                                         Rule("composite")));

}  // namespace
}  // namespace dynamix
