#include "runtime/differential.hpp"

#include <fmt/format.h>

#include "runtime/backend/emulator/emulator.hpp"
#include "runtime/generated_launch.hpp"

namespace ptxkit {

using rules::Differential;

namespace {

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
  const auto generated = generate_launch(module, kernel, facts, 0);
  if (!generated) return {{}, generated.error().message()};
  const auto placed = place(device, *generated);
  if (!placed) return {{}, placed.error().message()};
  const auto outcome = emulator::launch(
      *program, kernel.name, generated->shape, placed->arguments,
      {.checks = emulator::kCheckBounds | emulator::kCheckAlignment, .schedule_seed = seed, .max_steps = kMaxSteps});
  if (!outcome) return {{}, outcome.error().message()};
  if (!outcome->ok()) return {{}, "the kernel faults on the generated inputs: " + outcome->faults.front().message};
  for (size_t i = 0; i < placed->addresses.size(); ++i) {
    if (!generated->parameters[i].is_buffer) continue;
    const size_t at = run.memory.size();
    run.memory.resize(at + generated->parameters[i].bytes.size());
    if (auto read = device.read(placed->addresses[i], std::span(run.memory).subspan(at)); !read)
      return {{}, read.error().message()};
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
