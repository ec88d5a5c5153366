// What regions of device memory take: what the kernels that are launched on them declare in their @pz_cost blocks, and
// nothing else. `dsl-lint --regions` finds a size that comes from elsewhere.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cost.hpp"
#include "runtime/codec/device/kernel_call.hpp"
#include "runtime/codec/device/machine.hpp"

namespace ptxkit::codec {

// A region whose size the launches decide.
struct RegionName {
  const char* name;
  bool stays_on_device = false;
};

// Of the images that a machine launches; each block is read once.
class DeclaredCosts {
 public:
  explicit DeclaredCosts(const Machine& machine) : machine_(machine) {}

  // What a launch needs behind one of the kernel's pointers, and behind all of them.
  Result<size_t> bytes(std::string_view kernel, std::string_view parameter, const kernels::LaunchSize& launch);
  Result<size_t> memory_bytes(std::string_view kernel, const kernels::LaunchSize& launch);
  // Each as large as the calls need it: the most that any of them declares of a parameter for which it passes the
  // region.
  Result<std::vector<Region>> regions(std::span<const RegionName> names, std::span<const KernelCall> calls);

 private:
  struct Declared {
    const kernels::KernelImage* image;
    kernels::KernelCost cost;
  };
  Result<const Declared*> declared(std::string_view kernel);

  const Machine& machine_;
  std::map<std::string, Declared, std::less<>> declared_;
};

}  // namespace ptxkit::codec
