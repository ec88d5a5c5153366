#include "runtime/differential.hpp"

#include <fmt/format.h>

#include "runtime/backend/emulator/emulator.hpp"

namespace ptxkit {

using rules::Differential;

namespace {

constexpr uint64_t kDefaultBufferBytes = 1 << 16;
constexpr uint64_t kDefaultScalar = 64;
constexpr uint32_t kDefaultThreads = 64, kDefaultBlocks = 2;
constexpr uint64_t kSeeds[] = {0, 1, 2, 3};  // 0: warps in order
constexpr uint64_t kMaxSteps = 2'000'000;

Differential not_run(std::string why) { return {Differential::Outcome::not_run, std::move(why)}; }

struct Run {
  std::vector<std::byte> memory;  // of all buffers, one after the other
  std::string trouble;            // why it did not come to its end
};

Run run_once(const ptx::Module& module, const ptx::Function& kernel, const flow::LaunchFacts* facts, uint64_t seed) {
  Run run;
  emulator::Device device;
  // The module outlives the run.
  const auto program =
      emulator::Program::load(device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &module));
  if (!program) return {{}, program.error().message()};
  std::vector<emulator::Argument> arguments;
  std::vector<std::pair<emulator::Address, uint64_t>> buffers;
  for (const ptx::VariableId id : kernel.parameters) {
    const ptx::Variable& parameter = module.variables[id];
    const flow::ParameterFacts* known = nullptr;
    if (facts)
      if (const auto found = facts->parameters.find(parameter.name); found != facts->parameters.end())
        known = &found->second;
    if (parameter.is_array) return {{}, fmt::format("parameter '{}' is an aggregate", parameter.name)};
    const bool is_scalar = (known && known->low) || ptx::byte_width(parameter.type) < 8 ||
                           ptx::kind(parameter.type) == ptx::TypeKind::floating;
    uint64_t word = known && known->low ? *known->low : kDefaultScalar;
    if (!is_scalar) {
      const uint64_t bytes = known && known->size_bytes ? known->size_bytes : kDefaultBufferBytes;
      const auto address = device.allocate(bytes, std::string(parameter.name));
      if (!address) return {{}, address.error().message()};
      std::vector<std::byte> content(bytes);
      for (uint64_t i = 0; i < bytes; ++i) content[i] = std::byte{static_cast<unsigned char>(i % 4 ? 0 : i / 4 % 61)};
      if (auto written = device.write(*address, content); !written) return {{}, written.error().message()};
      buffers.emplace_back(*address, bytes);
      word = *address;
    }
    emulator::Argument argument = emulator::Argument::of(word);
    argument.bytes.resize(ptx::byte_width(parameter.type));
    arguments.push_back(std::move(argument));
  }
  emulator::LaunchShape shape{{kDefaultBlocks, 1, 1}, {kDefaultThreads, 1, 1}, 0};
  const auto& required = kernel.attributes.req_ntid;
  if (required[0]) shape.block = {required[0], std::max(required[1], 1u), std::max(required[2], 1u)};
  if (facts && facts->block[0]) shape.block = {facts->block[0], facts->block[1], facts->block[2]};
  if (facts && facts->grid[0]) shape.grid = {facts->grid[0], facts->grid[1], facts->grid[2]};
  if (facts) shape.dynamic_shared_bytes = static_cast<uint32_t>(facts->dynamic_shared_bytes);
  const auto outcome = emulator::launch(
      *program, kernel.name, shape, arguments,
      {.checks = emulator::kCheckBounds | emulator::kCheckAlignment, .schedule_seed = seed, .max_steps = kMaxSteps});
  if (!outcome) return {{}, outcome.error().message()};
  if (!outcome->ok()) return {{}, "the kernel faults on the generated inputs: " + outcome->faults.front().message};
  for (const auto& [address, bytes] : buffers) {
    const size_t at = run.memory.size();
    run.memory.resize(at + bytes);
    if (auto read = device.read(address, std::span(run.memory).subspan(at)); !read) return {{}, read.error().message()};
  }
  return run;
}

}  // namespace

Differential run_schedules(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts) {
  std::optional<Run> first;
  for (const uint64_t seed : kSeeds) {
    Run run = run_once(module, module.functions[kernel], facts, seed);
    if (!run.trouble.empty()) return not_run(run.trouble);
    if (!first) {
      first = std::move(run);
    } else if (first->memory != run.memory) {
      const auto [a, b] = std::mismatch(first->memory.begin(), first->memory.end(), run.memory.begin());
      return {Differential::Outcome::different,
              fmt::format("byte {} of the buffers is {} with the warps in order and {} in schedule random:{}",
                          a - first->memory.begin(), std::to_integer<int>(*a), std::to_integer<int>(*b), seed)};
    }
  }
  return {Differential::Outcome::same, fmt::format("{} schedules on the emulator", std::size(kSeeds))};
}

}  // namespace ptxkit
