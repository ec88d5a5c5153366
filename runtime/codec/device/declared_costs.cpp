#include "runtime/codec/device/declared_costs.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "support/check.hpp"

namespace ptxkit::codec {

Result<const DeclaredCosts::Declared*> DeclaredCosts::declared(std::string_view kernel) {
  if (const auto found = declared_.find(kernel); found != declared_.end()) return &found->second;
  auto image = machine_.image(kernel);
  if (!image) return tl::unexpected(image.error());
  auto cost = kernels::parse_kernel_cost((*image)->ptx);
  if (!cost)
    return fail(cost.error().what, fmt::format("kernel {}: {}", kernel, cost.error().where), cost.error().todo);
  return &declared_.emplace(std::string(kernel), Declared{*image, std::move(*cost)}).first->second;
}

Result<size_t> DeclaredCosts::bytes(std::string_view kernel, std::string_view parameter,
                                    const kernels::LaunchSize& launch) {
  const auto of = declared(kernel);
  if (!of) return tl::unexpected(of.error());
  const kernels::CostBuffer* const buffer = (*of)->cost.find_buffer(parameter);
  if (buffer == nullptr) {
    return fail(fmt::format("kernel {} declares nothing of its parameter {}", kernel, parameter),
                machine_.description(), "name the parameter among the buffers of its cost");
  }
  return buffer->bytes.evaluate(launch);
}

Result<size_t> DeclaredCosts::memory_bytes(std::string_view kernel, const kernels::LaunchSize& launch) {
  return declared(kernel).and_then([&](const Declared* of) { return of->cost.memory_bytes(launch); });
}

Result<std::vector<Region>> DeclaredCosts::regions(std::span<const RegionName> names,
                                                   std::span<const KernelCall> calls) {
  std::vector<Region> all;
  for (const RegionName& of : names) all.push_back({.name = of.name, .stays_on_device = of.stays_on_device});
  for (const KernelCall& call : calls) {
    const auto of = declared(call.kernel);
    if (!of) return tl::unexpected(of.error());
    const auto& parameters = (*of)->image->parameters;
    PTXKIT_CHECK(parameters.size() == call.arguments.size(), "a call has the arguments of its kernel");
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!call.arguments[i].is_region) continue;
      const auto needed = bytes(call.kernel, parameters[i].name, call.size);
      if (!needed) return tl::unexpected(needed.error());
      Region& region = all[call.arguments[i].value];
      region.size_bytes = std::max(region.size_bytes, *needed);
    }
    for (const ReachedRegion& reached : call.reached) {
      const auto needed = bytes(call.kernel, reached.array, call.size);
      if (!needed) return tl::unexpected(needed.error());
      Region& region = all[reached.region];
      region.size_bytes = std::max(region.size_bytes, *needed);
    }
  }
  return all;
}

Result<LaunchPlan> DeclaredCosts::plan(std::span<const RegionName> names, std::vector<KernelCall> calls) {
  auto sized = regions(names, calls);
  if (!sized) return tl::unexpected(sized.error());
  return LaunchPlan{std::move(calls), std::move(*sized)};
}

Result<const kernels::KernelCost*> DeclaredCosts::cost(std::string_view kernel) {
  return declared(kernel).transform([](const Declared* of) { return &of->cost; });
}

}  // namespace ptxkit::codec
