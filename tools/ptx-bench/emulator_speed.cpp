// emulator-speed FILE: measures thread instructions a second of processor time on the emulator, without checks and with
// all checks, for each kernel in FILE (fkr_tests/emulated/speed.ptx). The one parameter of a kernel points to 8 KiB.
// The figures depend on the machine; their ratio hardly does.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "runtime/emulator/emulator.hpp"
#include "support/file.hpp"

namespace ptxkit::tools {
namespace {

using namespace emulator;

constexpr unsigned kBlocks = 4, kThreads = 256;

struct Speed {
  double million_per_second = 0;
  uint64_t instructions = 0;  // of all threads of one CTA
};

Speed speed_of(const Program& program, std::string_view entry, Address data, uint32_t checks) {
  const std::vector<Argument> arguments{Argument::of(data)};
  Speed best;
  for (int round = 0; round < 3; ++round) {
    const std::clock_t start = std::clock();
    const auto outcome =
        launch(program, entry, {.grid = {kBlocks}, .block = {kThreads}}, arguments, {.checks = checks});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (!outcome || !outcome->ok()) {
      fmt::print(stderr, "emulator-speed: {}\n", outcome ? render(*outcome, "speed.ptx") : outcome.error().message());
      return {};
    }
    const uint64_t instructions = outcome->statistics.thread_instructions;
    best = {std::max(best.million_per_second, static_cast<double>(instructions) / seconds / 1e6),
            instructions / kBlocks};
  }
  return best;
}

int measure(const std::string& file) {
  Device device;
  const auto text = read_file(file);
  if (!text) {
    fmt::print(stderr, "emulator-speed: {}\n", text.error().message());
    return 11;
  }
  const auto program = Program::load_text(device, *text, file);
  const auto data = device.allocate(8192, "data");
  if (!program || !data || !device.fill(*data, std::byte{1}, 8192)) {
    fmt::print(stderr, "emulator-speed: {}\n", program ? "no memory" : program.error().message());
    return 10;
  }
  fmt::print("{:<18}{:>12}{:>12}{:>8}{:>14}   million thread instructions a second of processor time\n", "kernel",
             "no checks", "all checks", "ratio", "in a block");
  for (const EntryInfo& entry : program->entries()) {
    const Speed plain = speed_of(*program, entry.name, *data, kCheckNone);
    const Speed checked = speed_of(*program, entry.name, *data, kCheckStandard);
    if (plain.instructions == 0 || checked.instructions == 0) return 3;
    fmt::print("{:<18}{:>12.0f}{:>12.0f}{:>8.1f}{:>14}\n", entry.name, plain.million_per_second,
               checked.million_per_second, plain.million_per_second / checked.million_per_second, plain.instructions);
  }
  return 0;
}

}  // namespace
}  // namespace ptxkit::tools

int main(int count, char** arguments) {
  if (count == 2) return ptxkit::tools::measure(arguments[1]);
  fmt::print(stderr, "usage: emulator-speed FILE (fkr_tests/emulated/speed.ptx)\n");
  return 64;
}
