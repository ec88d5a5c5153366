// The value domain and the evaluator against the emulator, which shares no code with them: one instruction at a time,
// on operands with some known bits. The result of each thread must equal the evaluator's and lie within the fact.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/domain.hpp"
#include "analyzer/flow/evaluate.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "fkr_tests/unit/analyzer/flow/kernel.hpp"
#include "runtime/emulator/emulator.hpp"

namespace ptxkit::flow {
namespace {

constexpr uint32_t kThreads = 64;

// %r1 to %r3, %rd1, %rd2 and %h1 differ between threads but share some bits. %p1 is true for odd threads.
constexpr std::string_view kOperands = R"(
mov.u32 %r0, %tid.x;
mul.lo.u32 %r1, %r0, 37;
and.b32 %r1, %r1, 0x3c;
or.b32 %r1, %r1, 0x80000003;
mul.lo.u32 %r2, %r0, 11;
and.b32 %r2, %r2, 0xff0;
add.u32 %r2, %r2, 16;
and.b32 %r3, %r0, 31;
cvt.u64.u32 %rd1, %r1;
shl.b64 %rd1, %rd1, 9;
cvt.u64.u32 %rd2, %r2;
cvt.u16.u32 %h1, %r2;
and.b32 %r4, %r0, 1;
setp.eq.u32 %p1, %r4, 1;
)";

struct Case {
  std::string_view instructions;  // leave the result in %r100, or in %rd100 if they name it
  bool is_evaluated = true;       // the evaluator must know the result
  bool is_informed = true;        // the fact must exclude some value
};

std::string body_of(const Case& each) {
  std::string body(kOperands);
  body += each.instructions;
  if (each.instructions.find("%rd100") == std::string_view::npos) body += "\ncvt.u64.u32 %rd100, %r100;";
  return body +
         "\nld.param.u64 %rd190, [p];\nmul.wide.u32 %rd191, %r0, 8;\nadd.u64 %rd190, %rd190, %rd191;\n"
         "st.global.u64 [%rd190], %rd100;\nret;";
}

std::vector<uint64_t> emulated(const Kernel& kernel) {
  emulator::Device device;
  auto program = emulator::Program::load(
      device, std::shared_ptr<const ptx::Module>(std::shared_ptr<void>(), &kernel.parsed.module));
  std::vector<uint64_t> out(kThreads);
  if (!program) {
    ADD_FAILURE() << program.error().message();
    return out;
  }
  const emulator::Address to = *device.allocate(kThreads * 8, "out");
  const std::vector<emulator::Argument> arguments{emulator::Argument::of(to), emulator::Argument::of(uint32_t{0})};
  const auto outcome = emulator::launch(*program, "k", {.block = {kThreads}}, arguments, {.max_steps = 100'000});
  EXPECT_TRUE(outcome && outcome->faults.empty()) << (outcome ? emulator::render(*outcome, "test.ptx") : "");
  (void)device.read(to, std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(Emulated, OneInstruction) {
  const Case cases[] = {
      {"abs.s32 %r100, %r1;", true, false},
      {"abs.s32 %r100, %r2;"},
      {"neg.s32 %r100, %r2;"},
      {"not.b32 %r100, %r2;"},
      {"popc.b32 %r100, %r1;"},
      {"clz.b32 %r100, %r2;", false},
      {"set.lt.u32.u32 %r100, %r1, %r2;", false, false},
      {"shl.b32 %r100, %r2, %r3;"},
      {"shl.b32 %r100, %r2, 3;"},
      {"shr.s32 %r100, %r1, %r3;", true, false},
      {"shr.u32 %r100, %r1, 29;"},
      {"shf.l.wrap.b32 %r100, %r1, %r2, 7;", false},
      {"shf.r.wrap.b32 %r100, %r1, %r2, 7;", false},
      {"shf.r.clamp.b32 %r100, %r1, %r2, %r3;", false, false},
      {"prmt.b32 %r100, %r1, %r2, 0x7404;", false},
      {"prmt.b32 %r100, %r1, %r2, 0xb8f3;", false},
      {"prmt.b32.b4e %r100, %r1, %r2, %r3;", false, false},
      {"lop3.b32 %r100, %r1, %r2, %r3, 0x96;", false},
      {"lop3.b32 %r100, %r1, %r2, %r3, 0xe8;", false},
      {"lop3.b32 %r100, %r1, %r2, %r3, 0x1e;", false},
      {"bfi.b32 %r100, %r1, %r2, 4, 8;", false},
      {"bfi.b32 %r100, %r1, %r2, 40, 8;", false},
      {"bfi.b32 %r100, %r1, %r2, 4, 0;", false},
      {"bfi.b32 %r100, %r1, %r2, %r3, 8;", false, false},
      {"bfi.b64 %rd100, %rd1, %rd2, 32, 32;", false, false},
      {"bfe.u32 %r100, %r1, 2, 7;"},
      {"bfe.s32 %r100, %r1, %r3, 9;", true, false},
      {"bfe.s32 %r100, %r1, 28, 9;", true, false},
      {"mul.hi.u32 %r100, %r1, %r2;", true, false},
      {"mul.hi.s32 %r100, %r1, %r2;", true, false},
      {"mul.hi.u64 %rd100, %rd1, %rd2;", false, false},
      {"mul.lo.u64 %rd100, %rd1, %rd2;"},
      {"mad.lo.u32 %r100, %r2, %r2, %r1;"},
      {"mad.hi.u32 %r100, %r1, %r2, %r3;", true, false},
      {"div.s32 %r100, %r1, %r2;", true, false},
      {"rem.s32 %r100, %r1, %r2;", true, false},
      {"div.u32 %r100, %r1, %r2;", true, false},
      {"rem.u32 %r100, %r1, 16;"},
      {"min.s32 %r100, %r1, %r2;", true, false},
      {"max.s32 %r100, %r1, %r2;", true, false},
      {"min.u32 %r100, %r1, %r2;"},
      {"max.u32 %r100, %r1, %r2;"},
      {"mov.b64 %rd100, {%r1, %r2};"},
      {"mov.b64 {%r99, %r100}, %rd1;"},
      {"mov.b64 {%r100, %r99}, %rd1;"},
      {"mov.b32 %r100, {%h1, %h1};"},
      {"cvt.s32.s16 %r100, %h1;"},
      {"cvt.s64.s32 %rd100, %r1;"},
      {"selp.b32 %r100, %r1, %r2, %p1;", true, false},
      {"mov.u32 %r100, %laneid;"},
      {"mov.u32 %r100, %lanemask_eq;", true, false},
      {"mov.u32 %r100, %lanemask_lt;", true, false},
      {"mov.u32 %r100, %lanemask_le;", true, false},
      {"mov.u32 %r100, %lanemask_gt;", true, false},
      {"mov.u32 %r100, %lanemask_ge;", true, false},
      {"mov.u32 %r100, %warpid;", false},
      {"mov.u32 %r100, %nwarpid;", false},
      {"mov.u32 %r100, %smid;", false},
      {"mov.u32 %r100, %nsmid;", false},
      {"mov.u32 %r100, %nctaid.y;", false},
      {"mov.u32 %r100, %ntid.x;"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.instructions);
    const Kernel kernel(body_of(each), ".reqntid 64, 1, 1");
    ASSERT_TRUE(kernel.parsed.diagnostics.empty());
    const ValueId id = kernel.value(each.instructions.find("%rd100") == std::string_view::npos ? "%r100" : "%rd100");
    ASSERT_NE(id, kNone);
    const unsigned width = width_of(kernel.ssa, id);
    const Fact& fact = kernel.domain.fact(id);
    const uint64_t excluded = (fact.bits.zero | fact.bits.one) & low_mask(width);
    EXPECT_TRUE(excluded != 0 || fact.low != 0 || fact.high != low_mask(width) || !each.is_informed);
    const std::vector<uint64_t> results = emulated(kernel);
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      Evaluator evaluator(kernel.forms, thread_of(kernel.domain.shape(), thread));
      const auto value = evaluator.value(id);
      ASSERT_TRUE(value || !each.is_evaluated) << "thread " << thread;
      const uint64_t result = results[thread];
      ASSERT_EQ(value.value_or(result) & low_mask(width), result) << "thread " << thread;
      ASSERT_EQ(result & fact.bits.zero, 0u) << "thread " << thread;
      ASSERT_EQ(result & fact.bits.one, fact.bits.one & low_mask(width)) << "thread " << thread;
      ASSERT_GE(result, fact.low) << "thread " << thread;
      ASSERT_LE(result, fact.high) << "thread " << thread;
    }
  }
}

// Predicates cannot be stored, so each case selects 1 or 2 by the predicate.
TEST(Emulated, Comparisons) {
  for (const std::string_view type : {"u32", "s32", "b32"}) {
    for (const std::string_view order : {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}) {
      const bool is_sign_known = type != "b32", is_equality = order == "eq" || order == "ne";
      const bool is_unsigned_name = order == "lo" || order == "ls" || order == "hi" || order == "hs";
      if ((!is_sign_known && !is_equality) || (is_unsigned_name && type != "u32")) continue;
      for (const std::string_view left : {"%r1", "%r2", "%r5"}) {
        const std::string test = "or.b32 %r5, %r2, 1;\nadd.u32 %r6, %r2, 1;\nsetp." + std::string(order) + "." +
                                 std::string(type) + " %p2, " + std::string(left) +
                                 ", %r6;\nselp.u32 %r100, 1, 2, %p2;";
        SCOPED_TRACE(test);
        const Kernel kernel(body_of({test}));
        ASSERT_TRUE(kernel.parsed.diagnostics.empty());
        const std::vector<uint64_t> results = emulated(kernel);
        for (uint32_t thread = 0; thread < kThreads; ++thread) {
          Evaluator evaluator(kernel.forms, thread_of(kernel.domain.shape(), thread));
          ASSERT_EQ(evaluator.value(kernel.value("%r100")), results[thread]) << "thread " << thread;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ptxkit::flow
