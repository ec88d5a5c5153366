// Forms of compute capability 10.0 beside tcgen05: results computed here another way, and every misuse beside a twin
// that does it right.
#include <algorithm>
#include <bit>
#include <cmath>

#include <gmock/gmock.h>

#include "fkr_tests/unit/emulator/kernel.hpp"

namespace ptxkit::emulator {
namespace {

using ::testing::HasSubstr;

std::string sm_100(std::string text) {
  text.replace(text.find("sm_90"), 5, "sm_100a");
  text.replace(text.find("8.3"), 3, "8.8");
  return text;
}

std::string fault_of(const Ran& ran) {
  return ran.outcome.faults.empty() ? "" : std::string(name(ran.outcome.faults[0].kind));
}

// The reduction as sorting: numbers in the order of the line, -0 before +0, without the NaNs.
uint32_t reduced(std::vector<uint32_t> words, bool maximum, bool absolute, bool nan) {
  std::vector<float> numbers;
  bool has_nan = false;
  for (uint32_t word : words) {
    const float value = std::bit_cast<float>(absolute ? word & 0x7fffffff : word);
    if (std::isnan(value))
      has_nan = true;
    else
      numbers.push_back(value);
  }
  if (numbers.empty() || (nan && has_nan)) return 0x7fffffff;
  std::sort(numbers.begin(), numbers.end(),
            [](float a, float b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); });
  return std::bit_cast<uint32_t>(maximum ? numbers.back() : numbers.front());
}

TEST(Sm100, ReductionsOfSingles) {
  const std::vector<std::vector<uint32_t>> warps = {
      {0x3f800000, 0xbf800000, 0x40490fdb, 0xc2480000, 0x00000001, 0x7f7fffff},
      {0x00000000, 0x80000000},
      {0x80000000, 0x00000000, 0x80000001},
      {0x7fc00000, 0x3f800000, 0xff800000},
      {0x7fc00000, 0xffc00001},
      {0xff800000, 0x7f800000, 0x7f800001}};
  for (const auto& some : warps)
    for (const bool maximum : {false, true})
      for (const bool absolute : {false, true})
        for (const bool nan : {false, true}) {
          std::vector<uint32_t> words(32);
          for (size_t i = 0; i < 32; ++i) words[i] = some[(i * 5) % some.size()];
          const std::string modifiers =
              std::string(maximum ? ".max" : ".min") + (absolute ? ".abs" : "") + (nan ? ".NaN" : "");
          const Ran ran = run_kernel(sm_100(entry_text("  ld.global.f32 %f1, [%rd3];\n  redux.sync" + modifiers +
                                                       ".f32 %f2, %f1, 0xffffffff;\n  st.global.f32 [%rd2], %f2;\n")),
                                     {.block = {32}}, 32, words);
          ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
          for (uint32_t lane = 0; lane < 32; ++lane)
            EXPECT_EQ(ran.out[lane], reduced(words, maximum, absolute, nan)) << modifiers << " " << some[0];
        }
}

const std::string kTile = ".shared .align 16 .b8 tile[512];\n";

// Every word of the tile is its number, then `body` runs, then they go out.
Ran run_tile(const std::string& body) {
  return run_kernel(sm_100(entry_text("  mov.u32 %r1, tile;\n  shl.b32 %r2, %r0, 2;\n  add.u32 %r3, %r1, %r2;\n"
                                      "  add.u32 %r4, %r0, 1;\n  st.shared.u32 [%r3], %r4;\n"
                                      "  setp.eq.u32 %p1, %r0, 0;\n" +
                                          body + "  ld.shared.u32 %r5, [%r3];\n  st.global.u32 [%rd2], %r5;\n",
                                      kTile)),
                    {.block = {128}}, 256, std::vector<uint32_t>(256, 7));
}

TEST(Sm100, BulkStoresOfZeros) {
  const auto text = [](const std::string& address, const std::string& size) {
    return "  bar.sync 0;\n  @%p1 st.bulk.weak.shared::cta [" + address + "], " + size + ", 0;\n  bar.sync 0;\n";
  };
  const Ran ran = run_tile(text("%r1+16", "64"));
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(ran.out[i], i >= 4 && i < 20 ? 0 : i + 1) << i;
  EXPECT_EQ(fault_of(run_tile(text("%r1", "512"))), "");
  EXPECT_EQ(fault_of(run_tile("  mov.u64 %rd9, 0;\n" + text("%r1", "%rd9"))), "");
  EXPECT_EQ(fault_of(run_tile(text("%r1+16", "512"))), "out_of_bounds");
  EXPECT_EQ(fault_of(run_tile(text("%r1+4", "64"))), "misaligned");
  EXPECT_EQ(fault_of(run_tile("  mov.u64 %rd9, 60;\n" + text("%r1", "%rd9"))), "async_size");
  // Without the barrier behind it others read what it writes.
  EXPECT_EQ(fault_of(run_tile("  bar.sync 0;\n  @%p1 st.bulk.weak.shared::cta [%r1], 512, 0;\n")), "shared_race");
}

TEST(Sm100, MaskedBulkCopies) {
  const auto text = [](const std::string& wait) {
    return "  fence.proxy.async;\n  bar.sync 0;\n  mov.u16 %rs1, 0x8421;\n"
           "  @%p1 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd0+512], [%r1], 64, %rs1;\n"
           "  @%p1 cp.async.bulk.commit_group;\n" +
           wait + "  bar.sync 0;\n  @%p1 ld.global.u32 %r6, [%rd0+512];\n";
  };
  // The place that is not written keeps what it had: zeros of the kernel's own.
  const std::string before =
      "  mov.u32 %r7, 0x55555555;\n  setp.lt.u32 %p2, %r0, 16;\n  @%p2 st.global.u32 [%rd2+512], %r7;\n";
  const Ran ran = run_tile(before + text("  @%p1 cp.async.bulk.wait_group 0;\n"));
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t byte = ran.out[128 + i / 4] >> 8 * (i % 4) & 0xff, value = (i / 4 + 1) >> 8 * (i % 4) & 0xff;
    EXPECT_EQ(byte, i % 16 == 0 || i % 16 == 5 || i % 16 == 10 || i % 16 == 15 ? value : 0x55u) << i;
  }
  EXPECT_EQ(fault_of(run_tile(before + text(""))), "async_pending");
}

}  // namespace
}  // namespace ptxkit::emulator
