// Tests which buffers hold offsets, and which offsets launches put into them.
#include "runtime/launch/offset_words.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/launch/address_parts.hpp"
#include "runtime/launch/sized_launch.hpp"

namespace ptxkit {
namespace {

// A kernel of `indices`, `table` and `out`; %i is the address of the thread's word of `indices`, %o that of `out`.
ptx::ParseResult kernel_of(std::string_view body) {
  auto parsed = ptx::parse(
      R"(.version 8.0
.target sm_75
.address_size 64
.visible .entry kernel(.param .u64 indices, .param .u64 table, .param .u64 out)
{
  .reg .pred %p; .reg .b16 %h; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %i, %t, %o, %rd<9>; .shared .align 4 .b8 bins[256];
  ld.param.u64 %i, [indices]; ld.param.u64 %t, [table]; ld.param.u64 %o, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %i, %i, %rd1; add.u64 %o, %o, %rd1;
)" + std::string(body) +
          "\nret; }\n",
      "kernel.ptx");
  EXPECT_TRUE(parsed.diagnostics.empty());
  return parsed;
}

// The buffers of offsets as text, "indices anywhere 4" for each.
std::string found_in(std::string_view body) {
  const auto parsed = kernel_of(body);
  const ptx::Function& kernel = parsed.module.functions.back();
  std::string found;
  for (const OffsetWords& each : offset_words(parsed.module, kernel, address_parts(kernel))) {
    static constexpr const char* kNames[] = {"anywhere", "each_once", "rising"};
    found += std::string(found.empty() ? "" : ", ") + std::string(parsed.module.variables[each.parameter].name) + " " +
             kNames[static_cast<size_t>(each.offsets)] + " " + std::to_string(each.word_bytes);
  }
  return found;
}

constexpr std::string_view kGather =
    "ld.global.u32 %r2, [%i]; mul.wide.s32 %rd2, %r2, 4; add.s64 %rd3, %t, %rd2;\n"
    "ld.global.f32 %f1, [%rd3]; st.global.f32 [%o], %f1;";
constexpr std::string_view kScatter =
    "ld.global.u32 %r2, [%i]; mul.wide.s32 %rd2, %r2, 4; add.s64 %rd3, %t, %rd2;\n"
    "ld.global.f32 %f1, [%o]; st.global.f32 [%rd3], %f1;";
constexpr std::string_view kRows =
    "ld.global.u32 %r2, [%i]; ld.global.u32 %r3, [%i+4]; mov.f32 %f2, 0f00000000;\n"
    "next: setp.ge.s32 %p, %r2, %r3; @%p bra done;\n"
    "mul.wide.s32 %rd2, %r2, 4; add.s64 %rd3, %rd2, %t; ld.global.f32 %f1, [%rd3]; add.f32 %f2, %f2, %f1;\n"
    "add.s32 %r2, %r2, 1; bra next;\ndone: st.global.f32 [%o], %f2;";

TEST(OffsetWords, LoadsThatBecomeAddressesAreOffsets) {
  EXPECT_EQ(found_in(kGather), "indices anywhere 4");
  EXPECT_EQ(found_in(kScatter), "indices each_once 4");
  EXPECT_EQ(found_in(kRows), "indices rising 4");
  EXPECT_EQ(found_in("ld.global.v2.u64 {%rd4, %rd5}, [%i]; mad.lo.s64 %rd3, %rd5, 4, %t; ld.global.u32 %r2, [%rd3];"),
            "indices anywhere 8");
  EXPECT_EQ(found_in("ld.global.u32 %r2, [%i]; shl.b32 %r2, %r2, 2; mov.u32 %r3, bins; add.u32 %r3, %r3, %r2;\n"
                     "atom.shared.add.u32 %r4, [%r3], 1;"),
            "indices anywhere 4")
      << "of shared memory";
  EXPECT_EQ(found_in("ld.global.u32 %r2, [%i]; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %t, %rd2; ld.global.u32 %r3, "
                     "[%rd3];\nmul.wide.u32 %rd2, %r3, 8; add.s64 %rd4, %o, %rd2; st.global.u32 [%rd4], %r1;"),
            "indices each_once 4, table each_once 4")
      << "an index of an index";
}

TEST(OffsetWords, OtherLoadsAreNot) {
  EXPECT_EQ(found_in("ld.global.u32 %r2, [%i]; add.u32 %r2, %r2, 1; st.global.u32 [%o], %r2;"), "");
  EXPECT_EQ(
      found_in("ld.global.u8 %r2, [%i]; mul.wide.s32 %rd2, %r2, 4; add.s64 %rd3, %t, %rd2; ld.global.u32 %r3, [%rd3];"),
      "")
      << "a byte stays near";
  EXPECT_EQ(
      found_in(std::string(kGather) + "\nld.global.f32 %f2, [%i+4]; add.f32 %f2, %f2, %f1; st.global.f32 [%o+4], %f2;"),
      "")
      << "of a structure with a float";
}

TEST(GeneratedOffsets, AreWhatTheirNameSays) {
  std::set<bool> are_few;
  for (const unsigned word_bytes : {2u, 4u, 8u})
    for (const unsigned seed : {0u, 21u, 1000u}) {
      const auto words_of = [&](Offsets offsets) {
        const auto bytes = generated_offsets(2048, offsets, word_bytes, seed);
        std::vector<uint64_t> words(2048 / word_bytes);
        for (size_t i = 0; i < words.size(); ++i) std::memcpy(&words[i], &bytes[i * word_bytes], word_bytes);
        return words;
      };
      const auto anywhere = words_of(Offsets::anywhere);
      EXPECT_LT(std::ranges::max(anywhere), 64u);
      const size_t different = std::set(anywhere.begin(), anywhere.end()).size();
      EXPECT_TRUE(different == 16 || different > 40) << different;
      are_few.insert(different == 16);
      auto once = words_of(Offsets::each_once);
      std::vector<uint64_t> counted(once.size());
      std::iota(counted.begin(), counted.end(), 0);
      EXPECT_NE(once, counted);
      for (size_t i = 0; i < once.size(); i += 64) std::sort(once.begin() + i, once.begin() + i + 64);
      EXPECT_EQ(once, counted);
      const auto rising = words_of(Offsets::rising);
      EXPECT_EQ(rising.front(), 0u);
      for (size_t i = 1; i < rising.size(); ++i) {
        EXPECT_GE(rising[i], rising[i - 1]);
        EXPECT_LE(rising[i], rising[i - 1] + 3);
      }
      EXPECT_GT(rising.back(), rising.size());
    }
  EXPECT_EQ(are_few.size(), 2u) << "some seeds give numbers below 16";
  EXPECT_EQ(generated_offsets(7, Offsets::rising, 4, 1).size(), 7u)
      << "of the last word there is no room for nothing is set";
}

// With any contents of the table: floats of searching launches would be offsets far outside.
TEST(OffsetWords, EveryLaunchOfAKernelWithIndicesRunsClean) {
  for (const std::string_view body : {kGather, kScatter, kRows}) {
    const auto parsed = kernel_of(body);
    const ptx::Function& kernel = parsed.module.functions.back();
    for (unsigned variant = 0; variant < kFirstSearchVariant + 16; ++variant) {
      const auto launch = generate_sized_launch(parsed.module, kernel, nullptr, variant, 1 << 20);
      ASSERT_TRUE(launch);
      auto one_block = *launch;
      one_block.shape.grid = {1, 1, 1};  // %tid.x alone selects where a thread stores
      emulator::Device device;
      const auto run = emulate(device, parsed.module, kernel, one_block, {});
      ASSERT_TRUE(run) << run.error().message();
      // With contents of zeros all offsets are zero, and all threads store to one word.
      const bool is_collision = body == kScatter && !one_block.parameters[0].buffers[0].offsets;
      if (!is_collision) {
        EXPECT_TRUE(run->outcome.ok()) << variant << ": " << run->outcome.faults.front().message << "\n" << body;
      }
    }
  }
}

}  // namespace
}  // namespace ptxkit
