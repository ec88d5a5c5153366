// PTX with random damage is refused, runs into faults, or happens to work; the host is never harmed.
#include <algorithm>
#include <cstring>
#include <random>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "support/file.hpp"

namespace ptxkit::emulator {
namespace {

// One change: replaces a digit or a name's character, removes or duplicates a line, or exchanges two lines.
void damage(std::string& text, std::minstd_rand& random) {
  const size_t at = random() % text.size();
  const size_t begin = text.rfind('\n', at) == std::string::npos ? 0 : text.rfind('\n', at) + 1;
  const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
  switch (random() % 5) {
    case 0: {
      const size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) text[digit] = static_cast<char>('0' + random() % 10);
      break;
    }
    case 1: {
      const size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) text.insert(digit, std::to_string(random() % 100000));
      break;
    }
    case 2:
      text.erase(begin, end - begin);
      break;
    case 3:
      text.insert(begin, text.substr(begin, end - begin));
      break;
    default:
      text[at] = "%;,.[]{}abr19 "[random() % 14];
      break;
  }
}

TEST(Damaged, NeverHarmsTheHost) {
  auto original = read_file(std::string(EMULATOR_TEST_FOLDER) + "/compiled/optimised.ptx");
  ASSERT_TRUE(original) << original.error().message();
  std::minstd_rand random(1);
  int ran = 0;
  for (int round = 0; round < 160; ++round) {
    std::string text = *original;
    for (unsigned changes = 1 + random() % 2; changes > 0; --changes) damage(text, random);
    Device device({.memory_bytes = uint64_t{64} << 20});
    auto program = Program::load_text(device, text, "damaged.ptx");
    if (!program) {
      EXPECT_FALSE(program.error().message().empty());
      continue;
    }
    const Address buffer = *device.allocate(4096, "buffer");
    for (const EntryInfo& entry : program->entries()) {
      std::vector<std::byte> parameters(entry.parameter_bytes);
      for (const EntryParameter& each : entry.parameters)
        if (each.size_bytes == 8) std::memcpy(parameters.data() + each.offset_bytes, &buffer, 8);
      for (uint32_t checks : {uint32_t{kCheckAll}, uint32_t{kCheckNone}}) {
        auto outcome =
            launch_raw(*program, entry.name, {.block = {64}}, parameters, {.checks = checks, .max_steps = 3000});
        ran += outcome && outcome->statistics.warp_instructions > 0;
      }
    }
  }
  EXPECT_GT(ran, 100);
}

// ptxas accepts it, and reads the register behind the vector.
TEST(Damaged, AComponentBehindAVectorIsRefused) {
  Device device;
  auto program = Program::load_text(
      device, module_text(".visible .entry k() { .reg .v2 .b32 %w; .reg .b32 %r; mov.u32 %r, %w.z; ret; }"), "w.ptx");
  ASSERT_TRUE(program) << program.error().message();
  auto outcome = launch(*program, "k", {}, {});
  ASSERT_TRUE(outcome && outcome->faults.size() == 1);
  EXPECT_NE(outcome->faults[0].message.find("'%w' has 2 components, not '.z'"), std::string::npos)
      << outcome->faults[0].message;
}

TEST(Damaged, AKernelWithoutInstructionsEnds) {
  Device device;
  auto program = Program::load_text(device, module_text(".visible .entry k() {}"), "nothing.ptx");
  ASSERT_TRUE(program) << program.error().message();
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}}) {
    auto outcome = launch(*program, "k", {.grid = {2}, .block = {64}}, {}, {.schedule_seed = seed});
    EXPECT_TRUE(outcome && outcome->ok());
  }
}

TEST(Damaged, SizesBeyondTheHardwareAreRefused) {
  for (std::string_view body :
       {".visible .entry k(.param .align 4 .b8 p[99999999999]) { ret; }",
        ".visible .entry k() { .local .align 4 .b8 p[99999999999]; ret; }",
        ".const .align 4 .b8 p[99999999999]; .visible .entry k() { ret; }",
        ".global .align 4 .b8 p[9999999999999]; .visible .entry k() { ret; }",
        ".shared .align 4 .b8 p[99999999999]; .visible .entry k() { .reg .b32 %r; ld.shared.b32 %r, [p]; ret; }"}) {
    Device device;
    auto program = Program::load_text(device, module_text(body), "huge.ptx");
    EXPECT_FALSE(program) << body;
    if (program) continue;
    EXPECT_NE(program.error().message().find("huge.ptx:4:"), std::string::npos) << program.error().message();
  }
}

}  // namespace
}  // namespace ptxkit::emulator
