// The undefined bits of results, for each instruction: one bit too many would blame correct programs, one too few would
// miss a fault. The expected masks are derived by hand from the semantics of each instruction.
#include <bit>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fkr_tests/unit/runtime/emulator/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::emulator {
namespace {

// %r3 has the undefined bits 0xff00 and zeros, %r4 is 0x12345678, %r5 has the undefined bits 0xff, %p2 is undefined,
// %p3 true. `body` leaves its result in %r6; a branch depends on the bits of `mask`.
bool decides(const std::string& body, uint32_t mask) {
  const Ran ran =
      run_kernel(entry_text("  ld.global.u8 %r5, [%rd2];\n  shl.b32 %r3, %r5, 8;\n  mov.u32 %r4, 0x12345678;\n"
                            "  setp.eq.u32 %p2, %r5, 0;\n  setp.eq.u32 %p3, %r4, %r4;\n  mov.u32 %r6, 0;\n" +
                            body +
                            fmt::format("\n  and.b32 %r7, %r6, {:#x};\n  setp.ne.u32 %p1, %r7, 0;\n"
                                        "  @%p1 bra end;\nend:\n",
                                        mask)),
                 {.block = {1}}, 1);
  for (const Fault& fault : ran.outcome.faults) EXPECT_EQ(fault.kind, FaultKind::uninitialised_branch) << body;
  return !ran.outcome.ok();
}

TEST(UndefinedBits, OfResultsAreThoseThatCouldDiffer) {
  struct Case {
    std::string body;
    uint32_t undefined;
  };
  constexpr uint32_t kAll = 0xffffffff;
  const std::vector<Case> cases = {
      {"mov.u32 %r6, %r3;", 0xff00},
      {"and.b32 %r6, %r3, 0x0ff0;", 0x0f00},
      {"or.b32 %r6, %r3, 0x0f0f;", 0xf000},
      {"xor.b32 %r6, %r3, %r4;", 0xff00},
      {"not.b32 %r6, %r3;", 0xff00},
      {"shl.b32 %r6, %r3, 4;", 0xff000},
      {"shl.b32 %r6, %r3, 40;", 0},
      {"shl.b32 %r6, %r4, %r5;", kAll},
      {"shr.u32 %r6, %r3, 4;", 0x0ff0},
      {"shr.u32 %r6, %r3, 33;", 0},
      {"shl.b32 %r6, %r3, 16;\n  shr.s32 %r6, %r6, 4;", 0xfff00000},
      {"add.u32 %r6, %r3, 1;", 0xffffff00},  // bits below the lowest one cannot change
      {"mul.lo.u32 %r6, %r3, 3;", 0xffffff00},
      {"selp.b32 %r6, %r3, %r4, %p3;", 0xff00},
      {"selp.b32 %r6, %r4, %r3, %p3;", 0},
      {"selp.b32 %r6, %r4, %r4, %p2;", 0},
      {"selp.b32 %r6, %r4, 7, %p2;", kAll},
      {"prmt.b32 %r6, %r3, %r4, 0x0001;", 0xff},
      {"prmt.b32 %r6, %r3, %r4, 0x7416;", 0xff00},
      {"prmt.b32 %r6, %r3, %r4, 0x4449;", 0xff},  // its sign
      {"prmt.b32 %r6, %r3, %r4, %r5;", kAll},
      {"prmt.b32.f4e %r6, %r3, %r4, 1;", 0xff},
      {"prmt.b32.b4e %r6, %r3, %r4, 1;", 0xff},
      {"prmt.b32.rc8 %r6, %r3, %r4, 1;", kAll},
      {"prmt.b32.ecl %r6, %r3, %r4, 1;", 0xffff},
      {"prmt.b32.ecr %r6, %r3, %r4, 1;", 0xffffff00},
      {"prmt.b32.rc16 %r6, %r3, %r4, 0;", 0xff00ff00},
      {"shf.l.wrap.b32 %r6, %r3, %r4, 8;", 0},
      {"shf.l.clamp.b32 %r6, %r3, %r4, 32;", 0xff00},
      {"shf.r.wrap.b32 %r6, %r3, %r4, 8;", 0xff},
      {"shf.r.wrap.b32 %r6, %r4, %r3, 8;", 0},
      {"shf.r.wrap.b32 %r6, %r4, %r3, 16;", 0xff000000},
      {"shf.r.wrap.b32 %r6, %r4, %r4, %r5;", kAll},
      {"bfe.u32 %r6, %r3, 4, 8;", 0xf0},
      {"bfe.s32 %r6, %r3, 8, 4;", kAll},  // the sign too
      {"bfe.s32 %r6, %r3, 4, 4;", 0},
      {"bfe.u32 %r6, %r3, 8, 0;", 0},
      {"bfe.u32 %r6, %r4, %r5, 8;", kAll},
      {"bfi.b32 %r6, %r5, %r4, 16, 4;", 0xf0000},
      {"bfi.b32 %r6, %r4, %r3, 8, 8;", 0},
      {"bfi.b32 %r6, %r4, %r3, 32, 8;", 0xff00},
      {"bfi.b32 %r6, %r4, %r4, %r5, 8;", kAll},
      {"cvt.u32.u8 %r6, %r5;", 0xff},
      {"cvt.u32.u8 %r6, %r3;", 0},
      {"cvt.s32.s8 %r6, %r5;", kAll},
      {"cvt.s32.s16 %r6, %r5;", 0xff},
      {"cvt.u16.u32 %rs1, %r3;\n  cvt.u32.u16 %r6, %rs1;", 0xff00},
      // Predicates: a result that the other operand alone decides is defined.
      {"not.pred %p4, %p3;\n  and.pred %p4, %p4, %p2;\n  selp.b32 %r6, 1, 0, %p4;", 0},
      {"and.pred %p4, %p3, %p2;\n  selp.b32 %r6, 1, 0, %p4;", kAll},
      {"or.pred %p4, %p2, %p3;\n  selp.b32 %r6, 1, 0, %p4;", 0},
      {"xor.pred %p4, %p2, %p3;\n  selp.b32 %r6, 1, 0, %p4;", kAll},
      {"setp.ne.u32 %p4, %r4, %r4;\n  setp.lt.and.u32 %p5, %r3, 9, %p4;\n  selp.b32 %r6, 1, 0, %p5;", 0},
      {"setp.lt.and.u32 %p5, %r3, 9, %p3;\n  selp.b32 %r6, 1, 0, %p5;", kAll},
      {"setp.lt.or.u32 %p5, %r3, 9, %p3;\n  selp.b32 %r6, 1, 0, %p5;", 0},
      {"setp.lt.xor.u32 %p5, %r4, 9, %p2;\n  selp.b32 %r6, 1, 0, %p5;", kAll},
  };
  for (const Case& each : cases) {
    EXPECT_FALSE(each.undefined != kAll && decides(each.body, ~each.undefined)) << each.body;
    if (each.undefined == 0) continue;
    EXPECT_TRUE(decides(each.body, std::bit_floor(each.undefined))) << each.body;
    EXPECT_TRUE(decides(each.body, each.undefined & (~each.undefined + 1))) << each.body;
  }
}

}  // namespace
}  // namespace ptxkit::emulator
