// Instruction forms of memory and synchronisation beside the bits that an H200 gave.
#include <cstdlib>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/device/memory_cases.hpp"

namespace ptxkit::emulator {
namespace {

// Correct programs all: the checks find nothing. Where PTXKIT_FORMS names a folder they are written there.
TEST(MemoryForms, ProgramsRun) {
  const char* folder = std::getenv("PTXKIT_FORMS");
  size_t number = 0, instructions = 0;
  for (const ptx::Op op : ptxkit::testing::memory_ops())
    for (const ptxkit::testing::MemoryCase& each : ptxkit::testing::memory_cases(op)) {
      if (folder != nullptr) std::ofstream(fmt::format("{}/memory{}.ptx", folder, number)) << each.ptx;
      ++number;
      instructions += each.instructions.size();
      const auto out = ptxkit::testing::emulate_memory(each);
      EXPECT_TRUE(out) << number - 1 << " " << each.name << ": " << out.error().message();
    }
  EXPECT_GT(instructions, 9000u);
  fmt::print("{} instructions in {} programs\n", instructions, number);
}

}  // namespace
}  // namespace ptxkit::emulator
