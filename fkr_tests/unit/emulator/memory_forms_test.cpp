// Instruction forms of memory and synchronisation beside the bits that an H200 gave.
#include <cstdlib>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/device/memory_cases.hpp"

namespace ptxkit::emulator {
namespace {

using ptxkit::testing::memory_exception;
using ptxkit::testing::MemoryCase;

// Correct programs all: the checks find nothing. Recorded is what device_tests wrote with PTXKIT_RECORD_MEMORY. Where
// PTXKIT_FORMS names a folder the programs are written there.
TEST(MemoryForms, TheBitsAreThoseOfAnH200) {
  std::map<std::string, std::string> recorded;
  std::ifstream file(EMULATOR_TEST_FOLDER "/../../device/memory_h200.txt");
  for (std::string line; std::getline(file, line);)
    recorded[line.substr(line.find(' ') + 1)] = line.substr(0, line.find(' '));
  const char* folder = std::getenv("PTXKIT_FORMS");
  size_t number = 0, equal = 0, exceptions = 0, open = 0;
  for (const ptx::Op op : ptxkit::testing::memory_ops())
    for (const MemoryCase& each : ptxkit::testing::memory_cases(op)) {
      SCOPED_TRACE(each.name);
      if (folder != nullptr) std::ofstream(fmt::format("{}/memory{}.ptx", folder, number)) << each.ptx;
      ++number;
      const auto out = ptxkit::testing::emulate_memory(each);
      ASSERT_TRUE(out) << out.error().message();
      const std::string hashes = memory_hashes(each, *out), &real = recorded[each.name];
      ASSERT_EQ(hashes.size(), real.size());
      for (size_t i = 0; i < each.instructions.size(); ++i) {
        const std::string& instruction = each.instructions[i];
        if (real.compare(6 * i, 6, "------") == 0) {  // not yet run on one
          ++open;
          continue;
        }
        const bool same = hashes.compare(6 * i, 6, real, 6 * i, 6) == 0;
        if (memory_exception(instruction).empty())
          EXPECT_TRUE(same) << instruction;
        else
          EXPECT_FALSE(same) << instruction << " is no exception any more";
        (same ? equal : exceptions) += 1;
      }
    }
  EXPECT_EQ(recorded.size(), number);
  fmt::print("{} instructions of memory bit for bit as on an H200, {} known to differ, {} not yet compared\n", equal,
             exceptions, open);
}

}  // namespace
}  // namespace ptxkit::emulator
