// Stands in for a header that Debian's libtorch-dev 1.13 leaves out although its own
// c10d/reducer.hpp includes it. Declares what reducer.hpp names, with the same layout: a shared
// pointer to the context and the type of its callback. Comes last on the include path, so that a
// libtorch that has the real header uses that.
#pragma once

#include <functional>
#include <memory>

namespace at {
class Tensor;
}

namespace torch {
namespace distributed {
namespace autograd {

class DistAutogradContext {
 public:
  using GradCallback = std::function<bool(at::Tensor&)>;
};
using ContextPtr = std::shared_ptr<DistAutogradContext>;

}  // namespace autograd
}  // namespace distributed
}  // namespace torch
