// Fuzzes the emulator with any text as a program: it is rejected with a message, or runs with a generated launch until
// it ends, faults or has used up its steps. The same launch must give the same outcome twice.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "analyzer/ptx/diagnostic.hpp"
#include "fkr_tests/fuzz/ptx_damage.hpp"
#include "runtime/launch/generated_launch.hpp"

namespace ptxkit {
namespace {

constexpr uint64_t kMaxSteps = 2000;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "emulator_fuzz: %s\n", what);
  std::abort();
}

std::string run(const ptx::Module& module, const ptx::Function& kernel, const emulator::LaunchOptions& options) {
  emulator::Device device({.memory_bytes = uint64_t{64} << 20});
  const auto launch = generate_launch(module, kernel, nullptr, 0);
  require(launch.has_value(), "no launch can be made up");
  auto ran = emulate(device, module, kernel, *launch, options);
  if (!ran) {
    require(!ran.error().what.empty(), "an error without words");
    return ran.error().message();
  }
  return emulator::render(ran->outcome, "fuzz.ptx") + std::to_string(ran->outcome.statistics.thread_instructions) +
         ran->outcome.output;
}

}  // namespace
}  // namespace ptxkit

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ptxkit;
  if (size > testing::kMaxFuzzedBytes) return -1;
  const ptx::ParseResult parsed = ptx::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ptx");
  if (!parsed.diagnostics.empty()) return 0;
  for (const ptx::Function& function : parsed.module.functions) {
    if (!function.is_entry || !function.has_body) continue;
    const emulator::LaunchOptions checked{.max_steps = kMaxSteps};
    require(run(parsed.module, function, checked) == run(parsed.module, function, checked), "two outcomes of a launch");
    run(parsed.module, function,
        {.checks = emulator::kCheckNone, .schedule_seed = 1, .adversarial = true, .max_steps = kMaxSteps});
  }
  return 0;
}
