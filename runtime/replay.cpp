#include "runtime/replay.hpp"

#include <memory>

#include <fmt/format.h>

#include "runtime/backend/emulator/emulator.hpp"
#include "runtime/generated_launch.hpp"

namespace ptxkit {
namespace {

constexpr unsigned kVariants = 3;
constexpr uint64_t kMaxSteps = 500'000;

std::string_view dynamic_rule(std::string_view rule) {
  return rule == "F021" || rule == "F081" || rule == "F082" ? "F051" : rule;
}

}  // namespace

Replayed replay(const ptx::Module& module, ptx::FunctionId kernel, const flow::LaunchFacts* facts,
                std::string_view rule, uint32_t line) {
  const ptx::Function& function = module.functions[kernel];
  for (unsigned variant = 0; variant < kVariants; ++variant) {
    emulator::Device device;
    // The module outlives the run.
    const auto program =
        emulator::Program::load(device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &module));
    if (!program) return {Replayed::Outcome::not_run, program.error().message()};
    const auto generated = generate_launch(module, function, facts, variant);
    if (!generated) return {Replayed::Outcome::not_run, generated.error().message()};
    const auto placed = place(device, *generated);
    if (!placed) return {Replayed::Outcome::not_run, placed.error().message()};
    emulator::LaunchOptions options;
    options.max_steps = kMaxSteps;
    const auto outcome = emulator::launch(*program, function.name, generated->shape, placed->arguments, options);
    if (!outcome) return {Replayed::Outcome::not_run, outcome.error().message()};
    for (const emulator::Fault& fault : outcome->faults) {
      const bool is_other_side = fault.has_other && fault.other_site.line == line;
      if (emulator::rule(fault.kind) != dynamic_rule(rule) || (fault.site.line != line && !is_other_side)) continue;
      const auto& [block, thread] = fault.thread;
      return {Replayed::Outcome::confirmed, fmt::format("{}, thread ({},{},{}) of block ({},{},{})", fault.message,
                                                        thread[0], thread[1], thread[2], block[0], block[1], block[2])};
    }
  }
  return {Replayed::Outcome::unseen, fmt::format("{} generated launches did not show it", kVariants)};
}

}  // namespace ptxkit
