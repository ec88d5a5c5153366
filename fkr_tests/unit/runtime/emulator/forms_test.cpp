// Every form of the ISA table is decoded, except those that the table marks as missing.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"
#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/property/rewriting.hpp"
#include "fkr_tests/unit/analyzer/ptx/form_sample.hpp"
#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/core/image.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

// The emulator refuses exactly the forms that the table marks as not emulated.
TEST(Forms, EveryOneIsDecodedUnlessTheTableNamesItAsMissing) {
  std::map<const ptx::Unemulated*, size_t> met;  // refused forms, in some variant
  size_t forms = 0, decoded = 0;
  for (const ptx::Form& form : ptx::all_forms()) {
    const ptx::Unemulated* refused = nullptr;
    for (unsigned variant = 0; variant < 8; ++variant) {
      const ptx::Sample sample = ptx::make_sample(form, variant);
      ptx::ParseResult parsed = ptx::parse(ptx::make_module(sample), "sample.ptx");
      Device device({.sm = 200, .memory_bytes = uint64_t{64} << 20});
      auto program = Program::load(device, std::make_shared<const ptx::Module>(std::move(parsed.module)));
      ASSERT_TRUE(program) << program.error().message();
      const auto& refusals = program->image()->refusals;
      std::string roles;
      for (const ptx::OperandSpec& each : sample.operands) roles += each.letter;
      const ptx::Unemulated* row = ptx::find_unemulated(form.op, ptx::read_opcode(sample.spelling).words, roles);
      if (row != nullptr) {
        refused = row;
        ASSERT_EQ(refusals.size(), 1u) << sample.instruction;
        EXPECT_TRUE(refusals[0].ends_with(fmt::format(": {} is not emulated", row->what))) << refusals[0];
      } else {
        EXPECT_TRUE(refusals.empty()) << sample.instruction << "  " << refusals[0];
      }
    }
    ++forms;
    if (refused != nullptr) ++met[refused];
    decoded += refused == nullptr;
  }
  for (const ptx::Unemulated& row : ptx::unemulated()) {
    EXPECT_TRUE(met.contains(&row)) << row.what;
    fmt::print("refused: {} of {}: {}\n", met[&row], text(row.op), row.what);
  }
  fmt::print("{} of {} forms are decoded in every variant\n", decoded, forms);
}

// ptxas takes the words of an opcode in nearly any order; the handler is the same.
TEST(Forms, OtherOrdersOfWordsAreDecodedAlike) {
  std::mt19937 random(1);
  const auto image_of = [](const ptx::Sample& sample) {
    ptx::ParseResult parsed = ptx::parse(ptx::make_module(sample), "sample.ptx");
    Device device({.sm = 200, .memory_bytes = uint64_t{64} << 20});
    return Program::load(device, std::make_shared<const ptx::Module>(std::move(parsed.module)));
  };
  size_t count = 0;
  for (const ptx::Form& form : ptx::all_forms()) {
    ptx::Sample sample = ptx::make_sample(form, 1);
    const std::string operands = sample.instruction.substr(sample.spelling.size());
    const auto others = rewriting::other_orders(sample.spelling, 3, random);
    if (others.empty()) continue;
    const auto before = image_of(sample);
    ASSERT_TRUE(before);
    if (!before->image()->refusals.empty()) continue;
    for (const std::string& spelling : others) {
      sample.instruction = spelling + operands;
      const auto after = image_of(sample);
      ASSERT_TRUE(after);
      const auto &codes = before->image()->codes, &other = after->image()->codes;
      EXPECT_TRUE(after->image()->refusals.empty()) << sample.instruction;
      EXPECT_TRUE(std::ranges::equal(codes, other, [](const Code& a, const Code& b) {
        return a.kind == b.kind && a.sub == b.sub && a.run == b.run && a.dst == b.dst && a.a == b.a && a.b == b.b &&
               a.c == b.c && a.immediate == b.immediate;
      })) << sample.instruction;
      ++count;
    }
  }
  EXPECT_GT(count, 1000u);
}

// Why `instruction` is refused if its row is replaced by that of `other`; empty if it is not.
std::string refusal_with_row(const std::string& instruction, ptx::Op other) {
  ptx::ParseResult parsed =
      ptx::parse(fmt::format(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n.reg .u32 %r<4>;\n"
                             ".reg .u64 %l<4>;\n{}\nret;\n}}\n",
                             instruction),
                 "row.ptx");
  EXPECT_TRUE(parsed.diagnostics.empty());
  parsed.module.functions[0].instructions[0].form =
      static_cast<uint32_t>(ptx::forms_of(other).data() - ptx::all_forms().data());
  Device device({.memory_bytes = uint64_t{64} << 20});
  auto program = Program::load(device, std::make_shared<const ptx::Module>(std::move(parsed.module)));
  if (!program) return program.error().message();
  const auto& refusals = program->image()->refusals;
  return refusals.empty() ? "" : refusals[0];
}

// The row alone gives the purpose of an operand: the decoder takes exactly the operands of the row.
TEST(Forms, OperandsAreThoseOfTheRow) {
  EXPECT_EQ(refusal_with_row("mapa.u32 %r1, %r2, %r3;", ptx::Op::mapa), "");
  EXPECT_EQ(refusal_with_row("add.u32 %r1, %r2, %r3;", ptx::Op::mapa),
            "cannot run 'add.u32': nothing is known of its operand 'rank'");
  EXPECT_EQ(refusal_with_row("mapa.u32 %r1, %r2, %r3;", ptx::Op::sub),
            "cannot run 'mapa.u32': the ISA table gives it no 'rank'");
}

// The programs that device_tests compares with a GPU. If PTXKIT_FORMS names a folder they are written there.
TEST(Forms, ProgramsOfRegistersRun) {
  const auto cases = ptxkit::testing::form_cases();
  size_t ran = 0;
  const char* folder = std::getenv("PTXKIT_FORMS");
  for (const ptxkit::testing::FormCase& each : cases) {
    const auto slots = ptxkit::testing::emulate_forms({&each, 1});
    if (!slots) {
      EXPECT_NE(slots.error().message().find("cannot run"), std::string::npos) << slots.error().message();
      continue;
    }
    EXPECT_EQ(slots->size(), ptxkit::testing::form_bytes(each));
    if (folder != nullptr)
      std::ofstream(fmt::format("{}/{}.ptx", folder, ran)) << ptxkit::testing::form_program({&each, 1});
    ++ran;
  }
  fmt::print("{} of {} instructions\n", ran, cases.size());
  EXPECT_GT(ran, 900u);
  // Together they give the same results as each alone.
  const auto pair = ptxkit::testing::emulate_forms({cases.data(), 2}),
             second = ptxkit::testing::emulate_forms({&cases[1], 1});
  ASSERT_TRUE(pair && second);
  EXPECT_TRUE(std::equal(second->begin(), second->end(), pair->end() - static_cast<ptrdiff_t>(second->size())));
}

// The same bits as a GPU, without one: the bits of an H200 are recorded (device_tests, PTXKIT_RECORD_FORMS).
TEST(Forms, TheBitsAreThoseOfAnH200) {
  std::map<std::string, uint64_t> recorded;
  std::ifstream file(EMULATOR_TEST_FOLDER "/../../../device/forms_h200.txt");
  for (std::string line; std::getline(file, line);) recorded[line.substr(17)] = std::stoull(line, nullptr, 16);
  size_t equal = 0, exceptions = 0;
  for (const ptxkit::testing::FormCase& each : ptxkit::testing::form_cases()) {
    const auto slots = ptxkit::testing::emulate_forms({&each, 1});
    if (!slots) continue;
    ASSERT_TRUE(recorded.contains(each.instruction)) << each.instruction;
    const bool same = recorded[each.instruction] == ptxkit::testing::form_hash(*slots);
    const std::string_view exception = ptxkit::testing::form_exception(each);
    if (exception.empty()) {
      EXPECT_TRUE(same) << each.instruction;
    } else if (!each.approximate) {
      EXPECT_FALSE(same) << each.instruction << " is no exception any more";
    }
    equal += same;
    exceptions += !same;
  }
  fmt::print("{} instructions bit for bit as on an H200, {} known to differ\n", equal, exceptions);
}

}  // namespace
}  // namespace ptxkit::emulator
