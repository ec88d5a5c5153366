#include "runtime/generated_launch.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

namespace ptxkit {
namespace {

constexpr uint64_t kDefaultBufferBytes = 1 << 16;
constexpr uint64_t kDefaultScalar = 64;
constexpr unsigned kSeedsOfAParameter = 16;
constexpr uint32_t kDefaultThreads = 64, kDefaultBlocks = 2;

// Whole bytes of a parameter that holds no address, as the launch file says or as the type does.
bool is_scalar(const ptx::Variable& parameter, const flow::ParameterFacts* known, uint32_t address_bits) {
  return (known != nullptr && known->low) || ptx::byte_width(parameter.type) != address_bits / 8 ||
         ptx::kind(parameter.type) == ptx::TypeKind::floating;
}

uint64_t scalar_value(const flow::ParameterFacts* known, unsigned variant) {
  if (known == nullptr || !known->low) return kDefaultScalar;
  const uint64_t high = std::max(known->high.value_or(*known->low), *known->low);
  return variant % 2 == 0 ? *known->low : high;
}

emulator::LaunchShape shape_of(const ptx::Function& kernel, const flow::LaunchFacts* facts) {
  emulator::LaunchShape shape;
  shape.grid = {kDefaultBlocks, 1, 1};
  shape.block = {kDefaultThreads, 1, 1};
  const auto& most = kernel.attributes.max_ntid;
  if (most[0]) shape.block.x = std::min(kDefaultThreads, most[0] * std::max(most[1], 1u) * std::max(most[2], 1u));
  const auto& required = kernel.attributes.req_ntid;
  if (required[0]) shape.block = {required[0], std::max(required[1], 1u), std::max(required[2], 1u)};
  if (facts == nullptr) return shape;
  const auto or_one = [](uint32_t count) { return std::max(count, 1u); };
  if (facts->block[0]) shape.block = {facts->block[0], or_one(facts->block[1]), or_one(facts->block[2])};
  if (facts->grid[0]) shape.grid = {facts->grid[0], or_one(facts->grid[1]), or_one(facts->grid[2])};
  shape.dynamic_shared_bytes = static_cast<uint32_t>(facts->dynamic_shared_bytes);
  return shape;
}

}  // namespace

std::vector<std::byte> generated_bytes(size_t size_bytes, unsigned seed) {
  std::vector<std::byte> bytes(size_bytes);
  uint32_t state = seed * 2654435761u;
  for (size_t i = 0; i < size_bytes; ++i) {
    if (seed % kSeedsOfAParameter == 0) {
      const size_t word = i / 4 + seed / kSeedsOfAParameter;
      bytes[i] = std::byte{static_cast<unsigned char>(i % 4 ? 0 : word % 61)};
      continue;
    }
    state = state * 1664525 + 1013904223;  // Numerical Recipes' generator
    bytes[i] = std::byte{static_cast<unsigned char>(state >> 24)};
  }
  return bytes;
}

Result<GeneratedLaunch> generate_launch(const ptx::Module& module, const ptx::Function& kernel,
                                        const flow::LaunchFacts* facts, unsigned variant) {
  GeneratedLaunch launch;
  launch.variant = variant;
  launch.address_bytes = module.address_size / 8;
  launch.shape = shape_of(kernel, facts);
  for (const ptx::VariableId id : kernel.parameters) {
    const ptx::Variable& parameter = module.variables[id];
    const flow::ParameterFacts* known = nullptr;
    if (facts != nullptr) {
      const auto found = facts->parameters.find(parameter.name);
      if (found != facts->parameters.end()) known = &found->second;
    }
    if (parameter.is_array) return fail(fmt::format("parameter '{}' is an aggregate", parameter.name));
    GeneratedParameter& out = launch.parameters.emplace_back();
    out.name = parameter.name;
    out.is_buffer = !is_scalar(parameter, known, module.address_size);
    if (out.is_buffer) {
      out.seed = variant + kSeedsOfAParameter * static_cast<unsigned>(launch.parameters.size() - 1);
      out.bytes =
          generated_bytes(known != nullptr && known->size_bytes ? known->size_bytes : kDefaultBufferBytes, out.seed);
    } else {
      const uint64_t value = scalar_value(known, variant);
      out.bytes.resize(ptx::byte_width(parameter.type));
      std::memcpy(out.bytes.data(), &value, std::min(out.bytes.size(), sizeof value));
    }
  }
  return launch;
}

Result<EmulatedLaunch> emulate(emulator::Device& device, const ptx::Module& module, const ptx::Function& kernel,
                               const GeneratedLaunch& launch, const emulator::LaunchOptions& options) {
  // The module outlives the run.
  const auto program =
      emulator::Program::load(device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &module));
  if (!program) return tl::unexpected(program.error());
  EmulatedLaunch run;
  std::vector<emulator::Argument> arguments;
  for (const GeneratedParameter& parameter : launch.parameters) {
    emulator::Address& address = run.addresses.emplace_back(0);
    if (!parameter.is_buffer) {
      arguments.push_back({parameter.bytes});
      continue;
    }
    const auto allocated = device.allocate(parameter.bytes.size(), parameter.name);
    if (!allocated) return tl::unexpected(allocated.error());
    address = *allocated;
    if (auto written = device.write(address, parameter.bytes); !written) return tl::unexpected(written.error());
    arguments.push_back(emulator::Argument::of(address));
    arguments.back().bytes.resize(launch.address_bytes);
  }
  auto outcome = emulator::launch(*program, kernel.name, launch.shape, arguments, options);
  if (!outcome) return tl::unexpected(outcome.error());
  run.outcome = std::move(*outcome);
  return run;
}

}  // namespace ptxkit
