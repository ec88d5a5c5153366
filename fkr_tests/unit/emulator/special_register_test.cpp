// What the special registers of a launch hold. PTX ISA 9.0, chapter 10.
#include <fmt/format.h>

#include "fkr_tests/unit/emulator/kernel.hpp"

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

}  // namespace
}  // namespace ptxkit::emulator
