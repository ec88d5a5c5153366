#include "builder/registry.hpp"

#include <algorithm>

#include "builder/error.hpp"

namespace ptxkit::dsl {
namespace {

// A function's static: registrations of other sources run before or after those of this one.
std::vector<KernelMaker>& makers() {
  static std::vector<KernelMaker> all;
  return all;
}

}  // namespace

KernelRegistration::KernelRegistration(KernelMaker maker) noexcept { makers().push_back(maker); }

std::vector<KernelDefinition> registered_kernels() {
  std::vector<KernelDefinition> kernels;
  for (const KernelMaker maker : makers()) kernels.push_back(maker());
  const auto name_of = [](const KernelDefinition& kernel) -> const std::string& { return kernel.spec.name; };
  std::ranges::sort(kernels, {}, name_of);
  const auto twice = std::ranges::adjacent_find(kernels, {}, name_of);
  if (twice != kernels.end()) {
    throw DslError("two kernels are named " + twice->spec.name, twice->where, "the other one is here",
                   std::next(twice)->where, "give one of them another name");
  }
  return kernels;
}

}  // namespace ptxkit::dsl
