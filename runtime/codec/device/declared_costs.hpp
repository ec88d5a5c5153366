// Sizes of device memory regions, computed only from the @pz_cost blocks of the kernels that are launched on them.
// `dsl-lint --regions` reports sizes from any other source.
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

// A region whose size follows from the launches.
struct RegionName {
  const char* name;
  bool stays_on_device = false;
};

// Launches in their order, and the regions that a queue arranges for them.
struct LaunchPlan {
  std::vector<KernelCall> calls;
  std::vector<Region> regions;
};

// Reads the declarations in the images that `machine` launches, each once. `machine` must outlive it.
class DeclaredCosts {
 public:
  explicit DeclaredCosts(const Machine& machine) : machine_(machine) {}

  // The bytes that a launch needs behind one of the kernel's pointers ("src"), or behind the addresses in an array
  // ("inputs[]"), and behind all of them together.
  Result<size_t> bytes(std::string_view kernel, std::string_view parameter, const kernels::LaunchSize& launch);
  Result<size_t> memory_bytes(std::string_view kernel, const kernels::LaunchSize& launch);
  // Makes regions from `names`. Each is as large as the largest declaration among the calls that pass it as an
  // argument or reach it.
  Result<std::vector<Region>> regions(std::span<const RegionName> names, std::span<const KernelCall> calls);
  // The calls with these regions.
  Result<LaunchPlan> plan(std::span<const RegionName> names, std::vector<KernelCall> calls);
  // The declaration of a kernel. Valid as long as this object.
  Result<const kernels::KernelCost*> cost(std::string_view kernel);

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
