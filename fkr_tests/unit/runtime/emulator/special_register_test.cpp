// The values of special registers in a launch. PTX ISA 9.0, chapter 10.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

TEST(SpecialRegisters, OfThreadsWarpsAndBlocks) {
  const std::vector<std::string> names = {"tid.x",       "tid.y",       "tid.w",       "ntid.x",      "ntid.y",
                                          "ctaid.x",     "ctaid.y",     "nctaid.y",    "nctaid.w",    "laneid",
                                          "warpid",      "nwarpid",     "lanemask_eq", "lanemask_lt", "lanemask_le",
                                          "lanemask_gt", "lanemask_ge", "smid",        "nsmid"};
  constexpr unsigned kThreads = 40, kBlocks = 6;
  const auto count = static_cast<unsigned>(names.size());
  // 20 x 2 threads in each of 2 x 3 blocks.
  std::string body =
      "  mov.u32 %r1, %ctaid.y;\n  mad.lo.u32 %r2, %r1, 2, %ctaid.x;\n  mov.u32 %r3, %tid.y;\n"
      "  mad.lo.u32 %r4, %r3, 20, %r0;\n  mad.lo.u32 %r5, %r2, 40, %r4;\n" +
      fmt::format("  mul.wide.u32 %rd4, %r5, {};\n  add.u64 %rd4, %rd0, %rd4;\n", 4 * count);
  for (unsigned i = 0; i < count; ++i)
    body += fmt::format("  mov.u32 %r6, %{};\n  st.global.u32 [%rd4+{}], %r6;\n", names[i], 4 * i);
  body.replace(body.find("mad.lo.u32 %r2, %r1, 2, %ctaid.x"), 32,
               "mov.u32 %r6, %ctaid.x;\n  mad.lo.u32 %r2, %r1, 2, %r6");
  const Ran ran = run_kernel(entry_text(body), {.grid = {2, 3}, .block = {20, 2}}, size_t{kBlocks} * kThreads * count);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  for (uint32_t block = 0; block < kBlocks; ++block)
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      const uint32_t lane = thread % 32, bit = 1u << lane;
      const std::vector<uint32_t> expected = {thread % 20,        thread / 20, 0,     20,      2,
                                              block % 2,          block / 2,   3,     0,       lane,
                                              thread / 32,        2,           bit,   bit - 1, bit | (bit - 1),
                                              ~(bit | (bit - 1)), ~(bit - 1),  block, 132};
      for (unsigned i = 0; i < count; ++i)
        EXPECT_EQ(ran.out[(block * kThreads + thread) * count + i], expected[i]) << names[i] << " of " << thread;
    }
}

// Every instruction of the block is a tick, also within a turn of a warp.
TEST(SpecialRegisters, ClocksCountInstructions) {
  const std::vector<std::string> reads = {"mov.u32 %r{}, %clock;", "mov.u64 %rd4, %clock64;\n  cvt.u32.u64 %r{}, %rd4;",
                                          "mov.u32 %r{}, %globaltimer_lo;"};
  std::string body;
  for (unsigned i = 0; i < 3; ++i) {
    const std::string& read = reads[i];
    body += "  " + fmt::format(fmt::runtime(read), 1) + "\n";
    for (unsigned k = 0; k < 4; ++k) body += "  add.u32 %r3, %r0, 1;\n";
    body += "  " + fmt::format(fmt::runtime(read), 2) + "\n" +
            fmt::format("  sub.u32 %r1, %r2, %r1;\n  st.global.u32 [%rd0+{}], %r1;\n", 4 * i);
  }
  // A loop that waits for the clock ends, in every schedule.
  body +=
      "  mov.u32 %r1, %clock;\nwaits:\n  mov.u32 %r2, %clock;\n  sub.u32 %r2, %r2, %r1;\n"
      "  setp.lt.u32 %p0, %r2, 1000;\n  @%p0 bra waits;\n  st.global.u32 [%rd0+12], %r2;\n";
  const Ran ran = run_kernel(entry_text(body), {.block = {1}}, 4);
  ASSERT_TRUE(ran.outcome.ok()) << render(ran.outcome, "test.ptx");
  EXPECT_EQ(ran.out, (std::vector<uint32_t>{5, 6, 5, 1001}));
}

}  // namespace
}  // namespace ptxkit::emulator
