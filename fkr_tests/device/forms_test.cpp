// Every instruction form that computes on registers: the emulator's bits must be the GPU's.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "fkr_tests/device/device.hpp"
#include "fkr_tests/device/form_cases.hpp"
#include "support/result.hpp"

namespace ptxkit::testing {
namespace {

// The slots after a run on the GPU.
Result<std::vector<uint8_t>> run_forms(std::span<const FormCase> cases) {
  const std::vector<uint8_t> slots = form_inputs(cases);
  return run_in_out(form_program(cases), "forms", kFormThreads, slots, slots.size());
}

// If the driver refuses a program, its halves are tried, down to the single instruction that it refuses.
struct Tally {
  std::map<std::string, std::string> refused;    // instruction -> reason
  std::map<std::string, std::string> different;  // instruction -> first difference
  std::map<std::string, std::string> inexact;  // instruction -> first difference, for known exceptions (form_exception)
  std::vector<std::string> no_exception;       // equal, although form_exception says otherwise
  std::string record;                          // a line of forms_h200.txt for each instruction that ran
  size_t equal = 0;
};

std::string hexadecimal(std::span<const uint8_t> bytes) {
  std::string text;
  for (size_t i = 8; i-- > 0;) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

void compare(const FormCase& each, std::span<const uint8_t> in, std::span<const uint8_t> emulated,
             std::span<const uint8_t> real, Tally& tally) {
  size_t threads = 0;
  std::string first;
  const size_t row = each.registers.size() * 16;
  for (size_t thread = 0; thread < kFormThreads; ++thread) {
    bool same = true;
    for (size_t i = 0; i < each.registers.size(); ++i) {
      const size_t at = thread * row + i * 16;
      if (std::equal(real.begin() + at, real.begin() + at + 16, emulated.begin() + at)) continue;
      if (threads == 0 && same) {
        first = fmt::format("{} of thread {}: emulator {}, GPU {}, from", each.registers[i], thread,
                            hexadecimal(emulated.subspan(at)), hexadecimal(real.subspan(at)));
        for (size_t k = 0; k < each.registers.size(); ++k)
          first += fmt::format(" {}={}", each.registers[k], hexadecimal(in.subspan(thread * row + k * 16)));
      }
      same = false;
    }
    threads += !same;
  }
  tally.record += fmt::format("{:016x} {}\n", form_hash(real), each.instruction);
  const std::string_view known = form_exception(each);
  if (threads == 0) {
    ++tally.equal;
    if (!known.empty() && !each.approximate) tally.no_exception.push_back(each.instruction);
  } else if (known.empty()) {
    tally.different[each.instruction] = fmt::format("{} threads; {}", threads, first);
  } else {
    tally.inexact[each.instruction] = fmt::format("{}: {} threads; {}", known, threads, first);
  }
}

void check(std::span<const FormCase> cases, Tally& tally) {
  const auto real = run_forms(cases);
  if (!real) {
    if (cases.size() == 1) {
      tally.refused[cases[0].instruction] = real.error().message();
      return;
    }
    check(cases.first(cases.size() / 2), tally);
    return check(cases.subspan(cases.size() / 2), tally);
  }
  const auto emulated = emulate_forms(cases);
  ASSERT_TRUE(emulated) << emulated.error().message();
  const std::vector<uint8_t> in = form_inputs(cases);
  size_t begin = 0;
  for (const FormCase& each : cases) {
    const size_t size = form_bytes(each);
    compare(each, std::span(in).subspan(begin, size), std::span(*emulated).subspan(begin, size),
            std::span(*real).subspan(begin, size), tally);
    begin += size;
  }
}

TEST(DeviceForms, TheEmulatorsBitsAreTheDevices) {
  PTXKIT_REQUIRE_DEVICE();
  if ((*device())->info().major != 9) GTEST_SKIP() << "the forms are those of compute capability 9.0";
  std::vector<FormCase> cases;
  for (FormCase& each : form_cases())
    if (emulate_forms({&each, 1})) cases.push_back(std::move(each));
  constexpr size_t kCasesOfAProgram = 32;
  Tally tally;
  for (size_t i = 0; i < cases.size(); i += kCasesOfAProgram)
    check(std::span(cases).subspan(i, std::min(kCasesOfAProgram, cases.size() - i)), tally);
  for (const auto& [what, why] : tally.refused) fmt::print("refused by the driver: {}\n    {}\n", what, why);
  for (const auto& [what, why] : tally.inexact) fmt::print("known to differ: {}\n    {}\n", what, why);
  for (const auto& [what, why] : tally.different) fmt::print("different: {}\n    {}\n", what, why);
  fmt::print(
      "{} instructions of {} are equal bit for bit, {} are known to differ, {} differ, {} are "
      "refused\n",
      tally.equal, cases.size(), tally.inexact.size(), tally.different.size(), tally.refused.size());
  if (const char* file = std::getenv("PTXKIT_RECORD_FORMS")) std::ofstream(file) << tally.record;
  EXPECT_TRUE(tally.different.empty());
  EXPECT_TRUE(tally.refused.empty());
  if ((*device())->info().name != "Emulated GPU") {
    EXPECT_THAT(tally.no_exception, ::testing::IsEmpty());
  }
  EXPECT_GT(tally.equal, 850u);
}

}  // namespace
}  // namespace ptxkit::testing
