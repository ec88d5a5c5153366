// Compares instruction forms of memory and synchronisation with the bits that an H200 gave, and tests which forms of
// the ISA table have been compared.
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/device/image_cases.hpp"
#include "fkr_tests/device/matrix_cases.hpp"
#include "fkr_tests/device/memory_cases.hpp"
#include "fkr_tests/device/spelled_form.hpp"
#include "fkr_tests/device/tensor_cases.hpp"
#include "fkr_tests/unit/runtime/emulator/texture_programs.hpp"

namespace ptxkit::emulator {
namespace {

using ptxkit::testing::memory_exception;
using ptxkit::testing::MemoryCase;

// All programs are correct: the checks find nothing. The recorded bits are from device_tests with PTXKIT_RECORD_MEMORY.
// If PTXKIT_FORMS names a folder the programs are written there.
TEST(MemoryForms, TheBitsAreThoseOfAnH200) {
  std::map<std::string, std::string> recorded;
  std::ifstream file(EMULATOR_TEST_FOLDER "/../../../device/memory_h200.txt");
  for (std::string line; std::getline(file, line);)
    recorded[line.substr(line.find(' ') + 1)] = line.substr(0, line.find(' '));
  const char* folder = std::getenv("PTXKIT_FORMS");
  size_t number = 0, equal = 0, exceptions = 0;
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
        const bool same = hashes.compare(6 * i, 6, real, 6 * i, 6) == 0;
        if (memory_exception(instruction).empty())
          EXPECT_TRUE(same) << instruction;
        else
          EXPECT_FALSE(same) << instruction << " is no exception any more";
        (same ? equal : exceptions) += 1;
      }
    }
  EXPECT_EQ(recorded.size(), number);
  fmt::print("{} instructions of memory bit for bit as on an H200, {} known to differ\n", equal, exceptions);
}

// Why no program for an H200 contains the form, although one could run.
std::string_view reason(const ptx::Form& form) {
  using ptx::Op;
  switch (form.op) {
    case Op::multimem:
      return "`multimem` needs memory of several devices behind one address";
    case Op::trap:
    case Op::brkpt:
      return "`trap` and `brkpt` end the launch";
    case Op::ld:
    case Op::st:
      return "eight elements of 8 or 16 bits, which ptxas 13.0 compiles wrongly";
    case Op::txq:
      return "questions to a sampler, with which a driver loads no kernel";
    case Op::cvt:
      return "`cvt`, all of whose instructions another row has too";
    default:
      return "";
  }
}

TEST(MemoryForms, FormsThatWereComparedWithAnH200) {
  std::vector<bool> met(ptx::all_forms().size());
  const auto note = [&](const std::string& text) {
    const ptx::ParseResult parsed = ptx::parse(text, "program.ptx");
    for (const ptx::Function& function : parsed.module.functions)
      for (const ptx::Instruction& instruction : function.instructions)
        if (instruction.form < met.size()) met[instruction.form] = true;
  };
  note(ptxkit::testing::form_program(ptxkit::testing::form_cases()));
  for (const auto& each : ptxkit::testing::matrix_cases()) note(each.ptx);
  for (const auto& each : ptxkit::testing::tensor_cases()) note(each.ptx);
  for (const std::string& each : texture_programs()) note(each);
  for (const ptx::Op op : ptxkit::testing::image_ops())
    for (const auto& each : ptxkit::testing::image_cases(op)) note(each.ptx);
  for (const ptx::Op op : ptxkit::testing::memory_ops())
    for (const MemoryCase& each : ptxkit::testing::memory_cases(op)) note(each.ptx);
  size_t count = 0, later = 0;
  std::map<std::string_view, size_t> reasons;
  for (size_t i = 0; i < met.size(); ++i) {
    const ptx::Form& form = ptx::all_forms()[i];
    count += met[i];
    if (met[i]) continue;
    if (!ptxkit::testing::runs_on_90(form)) {
      ++later;
      continue;
    }
    EXPECT_NE(reason(form), "") << text(form.op) << " " << form.modifiers << " (" << form.operands << ")";
    ++reasons[reason(form)];
  }
  fmt::print("{} of {} forms compared with an H200\n", count, met.size());
  fmt::print("not compared: {} (none for compute capability 9.0)\n", later);
  for (const auto& [why, forms] : reasons) fmt::print("not compared: {} ({})\n", forms, why);
}

}  // namespace
}  // namespace ptxkit::emulator
