#include "runtime/generated_launch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "runtime/aggregate_members.hpp"

namespace ptxkit {
namespace {

constexpr uint64_t kDefaultBufferBytes = 1 << 16;
// By variant; the last for all that follow. Counts that divide one another want to be small.
constexpr std::array<uint64_t, 5> kDefaultScalars = {64, 64, 64, 1, 2};
constexpr unsigned kSeedsOfAParameter = 16;
constexpr uint32_t kDefaultThreads = 64, kDefaultBlocks = 2;
constexpr uint64_t kSharedBytes = 48 << 10, kSharedAlign = 128;

// Whole bytes of a parameter that holds no address, as the launch file says or as the type does.
bool is_scalar(const ptx::Variable& parameter, const flow::ParameterFacts* known, uint32_t address_bits) {
  return (known != nullptr && known->low) || ptx::byte_width(parameter.type) != address_bits / 8 ||
         ptx::kind(parameter.type) == ptx::TypeKind::floating;
}

uint64_t default_scalar(unsigned variant) {
  return kDefaultScalars[std::min<size_t>(variant, kDefaultScalars.size() - 1)];
}

uint64_t scalar_value(const flow::ParameterFacts* known, unsigned variant) {
  if (known == nullptr || !known->low) return default_scalar(variant);
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

// What is left of the 48 KiB that every block may have; 0 without shared memory of no size.
uint32_t free_shared_bytes(const ptx::Module& module, const ptx::Function& kernel) {
  uint64_t taken = 0;
  bool is_open = false;
  for (const ptx::Variable& variable : module.variables) {
    const bool is_of_kernel = variable.function == ptx::kNone || &module.functions[variable.function] == &kernel;
    if (variable.space != ptx::Space::shared || !is_of_kernel) continue;
    is_open |= variable.is_unsized;
    taken += (variable.size_bytes + kSharedAlign - 1) / kSharedAlign * kSharedAlign;
  }
  return is_open && taken < kSharedBytes ? static_cast<uint32_t>(kSharedBytes - taken) : 0;
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

GeneratedLaunch generate_launch(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts,
                                unsigned variant) {
  GeneratedLaunch launch;
  launch.variant = variant;
  launch.address_bytes = module.address_size / 8;
  launch.shape = shape_of(kernel, facts);
  if (launch.shape.dynamic_shared_bytes == 0) launch.shape.dynamic_shared_bytes = free_shared_bytes(module, kernel);
  std::optional<std::vector<AggregateMember>> members;
  unsigned buffer_count = 0;
  const uint64_t scalar = default_scalar(variant);
  const auto add_buffer = [&](GeneratedParameter& out, uint64_t offset, uint64_t size_bytes) {
    const unsigned seed = variant + kSeedsOfAParameter * buffer_count++;
    out.buffers.push_back({offset, seed, generated_bytes(size_bytes ? size_bytes : kDefaultBufferBytes, seed)});
  };
  for (const ptx::VariableId id : kernel.parameters) {
    const ptx::Variable& parameter = module.variables[id];
    const flow::ParameterFacts* known = nullptr;
    if (facts != nullptr) {
      const auto found = facts->parameters.find(parameter.name);
      if (found != facts->parameters.end()) known = &found->second;
    }
    GeneratedParameter& out = launch.parameters.emplace_back();
    out.name = parameter.name;
    out.is_aggregate = parameter.is_array;
    const auto number = static_cast<unsigned>(launch.parameters.size() - 1);
    if (parameter.is_array) {
      out.value.resize(parameter.size_bytes);
      if (!members) members = aggregate_members(module, kernel);
      for (const AggregateMember& member : *members) {
        if (member.parameter != id || member.offset + member.size_bytes > out.value.size()) continue;
        if (member.is_address)
          add_buffer(out, member.offset, 0);
        else
          std::memcpy(&out.value[member.offset], &scalar, std::min<size_t>(member.size_bytes, sizeof scalar));
      }
    } else if (is_scalar(parameter, known, module.address_size)) {
      const uint64_t value = scalar_value(known, variant);
      out.value.resize(ptx::byte_width(parameter.type));
      std::memcpy(out.value.data(), &value, std::min(out.value.size(), sizeof value));
    } else {
      out.value.resize(launch.address_bytes);
      buffer_count = std::max(buffer_count, number);
      add_buffer(out, 0, known != nullptr ? known->size_bytes : 0);
    }
  }
  return launch;
}

std::vector<std::byte> argument_of(const GeneratedParameter& parameter, std::span<const uint64_t> addresses,
                                   uint32_t address_bytes) {
  std::vector<std::byte> value = parameter.value;
  for (size_t i = 0; i < parameter.buffers.size(); ++i)
    std::memcpy(&value[parameter.buffers[i].offset], &addresses[i], address_bytes);
  return value;
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
    const size_t first = run.addresses.size();
    for (const GeneratedBuffer& buffer : parameter.buffers) {
      const auto allocated = device.allocate(buffer.bytes.size(), parameter.name);
      if (!allocated) return tl::unexpected(allocated.error());
      run.addresses.push_back(*allocated);
      if (auto written = device.write(*allocated, buffer.bytes); !written) return tl::unexpected(written.error());
    }
    arguments.push_back({argument_of(parameter, std::span(run.addresses).subspan(first), launch.address_bytes)});
  }
  auto outcome = emulator::launch(*program, kernel.name, launch.shape, arguments, options);
  if (!outcome) return tl::unexpected(outcome.error());
  run.outcome = std::move(*outcome);
  return run;
}

}  // namespace ptxkit
