// Every form of the ISA table is decoded, but for the opcodes and words that docs/emulator.md names as missing.
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "fkr_tests/device/form_cases.hpp"
#include "fkr_tests/unit/emulator/kernel.hpp"
#include "fkr_tests/unit/ptx/form_sample.hpp"
#include "runtime/backend/emulator/image.hpp"

namespace ptxkit::emulator {
namespace {

// mov.v4 of a scalar: the ISA gives it no meaning.
constexpr std::string_view kMissingOpcodes[] = {
    "tcgen05.", "clusterlaunchcontrol.", "tensormap.", "tex.2dms", "tex.a2dms", "mov.v4."};
constexpr std::string_view kMissingWords[] = {".im2col", ".tile::gather4", ".tile::scatter4", ".kind::"};

// What is not there, by opcode or by a word of the modifiers: the one that an instruction has, none for others.
std::string_view missing_part(const std::string& instruction, const std::string& refusal) {
  static constexpr std::string_view kDepths = "a comparison of depths";
  if (refusal.ends_with(kDepths)) return kDepths;
  for (std::string_view part : kMissingOpcodes)
    if (instruction.starts_with(part)) return part;
  for (std::string_view part : kMissingWords)
    if (instruction.find(part) != std::string::npos) return part;
  return {};
}

TEST(Forms, EveryOneIsDecodedOrNamedAsMissing) {
  std::map<std::string, std::set<std::string>> refused;
  std::set<std::string_view> missing;
  size_t forms = 0, decoded = 0;
  for (const ptx::Form& form : ptx::all_forms()) {
    bool all = true;
    for (unsigned variant = 0; variant < 4; ++variant) {
      const ptx::Sample sample = ptx::make_sample(form, variant);
      ptx::ParseResult parsed = ptx::parse(ptx::make_module(sample), "sample.ptx");
      Device device({.sm = 200, .memory_bytes = uint64_t{64} << 20});
      auto program = Program::load(device, std::make_shared<const ptx::Module>(std::move(parsed.module)));
      ASSERT_TRUE(program) << program.error().message();
      if (program->image()->refusals.empty()) continue;
      all = false;
      const std::string_view part = missing_part(sample.instruction, program->image()->refusals.front());
      missing.insert(part);
      if (part.empty())
        refused[fmt::format("{} | {} | {}", text(form.op), form.modifiers, form.operands)].insert(
            sample.instruction + "  " + program->image()->refusals.front());
    }
    ++forms;
    decoded += all;
  }
  std::string list;
  for (const auto& [form, why] : refused) list += form + "\n    " + *why.begin() + "\n";
  EXPECT_TRUE(refused.empty()) << refused.size() << " forms\n" << list;
  // Nothing is called missing that is decoded by now.
  for (std::string_view part : kMissingOpcodes) EXPECT_TRUE(missing.contains(part)) << part;
  for (std::string_view part : kMissingWords) EXPECT_TRUE(missing.contains(part)) << part;
  fmt::print("{} of {} forms are decoded in every variant\n", decoded, forms);
}

// The programs that device_tests compares with a GPU. Where PTXKIT_FORMS names a folder they are written there.
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
  // Together they give what each gives alone.
  const auto pair = ptxkit::testing::emulate_forms({cases.data(), 2}),
             second = ptxkit::testing::emulate_forms({&cases[1], 1});
  ASSERT_TRUE(pair && second);
  EXPECT_TRUE(std::equal(second->begin(), second->end(), pair->end() - static_cast<ptrdiff_t>(second->size())));
}

// The same bits as the GPU's, where there is none: what an H200 gave is recorded (device_tests, PTXKIT_RECORD_FORMS).
TEST(Forms, TheBitsAreThoseOfAnH200) {
  std::map<std::string, uint64_t> recorded;
  std::ifstream file(EMULATOR_TEST_FOLDER "/../../device/forms_h200.txt");
  for (std::string line; std::getline(file, line);) recorded[line.substr(17)] = std::stoull(line, nullptr, 16);
  size_t equal = 0, exceptions = 0;
  for (const ptxkit::testing::FormCase& each : ptxkit::testing::form_cases()) {
    const auto slots = ptxkit::testing::emulate_forms({&each, 1});
    if (!slots) continue;
    if (each.instruction.starts_with("fma.rn.oob")) {  // not yet run on one
      EXPECT_FALSE(recorded.contains(each.instruction)) << each.instruction << " is compared like others now";
      continue;
    }
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
