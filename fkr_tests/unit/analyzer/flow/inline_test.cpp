#include "analyzer/flow/inline.hpp"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/names.hpp"

namespace ptxkit::flow {
namespace {

using ptx::Op;

struct Program {
  ptx::ParseResult parsed;
  std::optional<Inlined> inlined;
};

// Parses the functions and a kernel with this body, and inlines the calls.
Program followed(const std::string& functions, const std::string& body) {
  Program program{ptx::parse(".version 8.0\n.target sm_80\n.address_size 64\n" + functions +
                                 "\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .pred %p<9>;\n"
                                 ".reg .b16 %h<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n" +
                                 body + "\nret;\n}\n",
                             "test.ptx"),
                  std::nullopt};
  EXPECT_TRUE(program.parsed.diagnostics.empty());
  for (ptx::FunctionId id = 0; id < program.parsed.module.functions.size(); ++id)
    if (program.parsed.module.functions[id].is_entry) program.inlined = inline_calls(program.parsed.module, id);
  return program;
}

size_t count(const Inlined& inlined, Op op) {
  return static_cast<size_t>(std::ranges::count(inlined.function.instructions, op, &ptx::Instruction::op));
}

constexpr const char* kTwice =
    ".func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<3>;\nld.param.u32 %r1, [x];\n"
    "setp.eq.u32 %p1, %r1, 0;\n@%p1 trap;\nadd.u32 %r2, %r1, %r1;\nst.param.b32 [r], %r2;\nret;\n}\n";
const std::string kCallTwice =
    "{\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r1;\ncall.uni (b), twice, (a);\nld.param.b32 %r2, [b];\n}\n";

TEST(Inline, AKernelWithoutCallsIsLeftAlone) { EXPECT_FALSE(followed(kTwice, "mov.u32 %r1, 1;").inlined); }

TEST(Inline, TheCalleesBodyReplacesTheCall) {
  const Program program = followed(kTwice, "mov.u32 %r1, 1;\n" + kCallTwice);
  ASSERT_TRUE(program.inlined);
  const Inlined& inlined = *program.inlined;
  EXPECT_EQ(count(inlined, Op::call), 0u);
  EXPECT_EQ(count(inlined, Op::trap), 1u);
  EXPECT_EQ(count(inlined, Op::ret), 1u) << "that of the kernel";
  EXPECT_EQ(count(inlined, Op::ld) + count(inlined, Op::st), 0u) << "parameters are registers";
  ASSERT_EQ(inlined.origins.size(), inlined.function.instructions.size());
  for (size_t i = 0; i < inlined.origins.size(); ++i) {
    const Inlined::Origin& origin = inlined.origins[i];
    const ptx::Instruction& own = program.parsed.module.functions[origin.function].instructions[origin.instruction];
    EXPECT_EQ(inlined.function.instructions[i].at, own.at);
    EXPECT_EQ(origin.call == ptx::kNone || origin.is_made, origin.function == 1u || origin.is_made);
  }
  EXPECT_EQ(inlined.function.name, "k");
}

TEST(Inline, EachCallHasItsOwnCopy) {
  const Program program = followed(kTwice, "mov.u32 %r1, 1;\n" + kCallTwice + kCallTwice);
  ASSERT_TRUE(program.inlined);
  EXPECT_EQ(program.inlined->calls.size(), 2u);
  EXPECT_EQ(count(*program.inlined, Op::trap), 2u);
}

TEST(Inline, CallsWithinCallsNameTheirChain) {
  const std::string outer = ".func outer()\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, 1;\n" + kCallTwice + "ret;\n}\n";
  const Program program = followed(kTwice + outer, "call outer;");
  ASSERT_TRUE(program.inlined);
  const auto& calls = program.inlined->calls;
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].callee, 1u);
  EXPECT_EQ(calls[0].from, ptx::kNone);
  EXPECT_EQ(calls[1].callee, 0u);
  EXPECT_EQ(calls[1].caller, 1u);
  EXPECT_EQ(calls[1].from, 0u);
}

TEST(Inline, AGuardedCallIsBranchedAround) {
  const Program program = followed(".func f()\n{\n.reg .pred %p<2>;\n@%p1 ret;\ntrap;\nret;\n}\n", "@%p1 call f;");
  ASSERT_TRUE(program.inlined);
  const ptx::Function& function = program.inlined->function;
  ASSERT_EQ(function.instructions[0].op, Op::bra);
  EXPECT_TRUE(function.instructions[0].guard.negated);
  ASSERT_EQ(function.instructions[1].op, Op::bra) << "the callee's guarded ret";
  EXPECT_FALSE(function.instructions[1].guard.negated);
  for (const size_t id : {0u, 1u}) {
    const ptx::Operand& target = function.operand_pool[function.instructions[id].first_operand];
    EXPECT_EQ(function.instructions[function.labels[target.id].target].op, Op::ret);
  }
}

TEST(Inline, StructuresPassPartByPart) {
  const std::string callee =
      ".func f(.param .align 8 .b8 x[16])\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\nld.param.u64 %rd1, [x];\n"
      "ld.param.v2.u32 {%r1, %r2}, [x+8];\nret;\n}\n";
  const std::string call =
      "{\n.param .align 8 .b8 a[16];\nst.param.b64 [a], %rd1;\nst.param.b32 [a+8], %r1;\nst.param.b32 [a+12], %r2;\n"
      "call f, (a);\n}\n";
  EXPECT_TRUE(followed(callee, call).inlined);
  // Two words are stored, but a double word is loaded.
  const std::string other =
      "{\n.param .align 8 .b8 a[16];\nst.param.v2.b32 [a], {%r1, %r2};\nst.param.v2.b32 [a+8], {%r1, %r2};\n"
      "call f, (a);\n}\n";
  EXPECT_FALSE(followed(callee, other).inlined);
}

TEST(Inline, WhatCannotBeFollowedStaysACall) {
  EXPECT_FALSE(followed(".extern .func f();\n", "call f;").inlined) << "no body";
  EXPECT_FALSE(
      followed(".func f()\n{\nret;\n}\n", "mov.u64 %rd1, f;\ntypes: .callprototype _ ();\ncall %rd1, (), types;")
          .inlined)
      << "through a register";
  const std::string addressed = ".func f(.param .b32 x)\n{\n.reg .b64 %rd<2>;\nmov.b64 %rd1, x;\nret;\n}\n";
  EXPECT_FALSE(followed(addressed, "{\n.param .b32 a;\nst.param.b32 [a], %r1;\ncall f, (a);\n}\n").inlined)
      << "the parameter's address is taken";
  const Program recursive = followed(".func f()\n{\ncall f;\nret;\n}\n", "call f;");
  ASSERT_TRUE(recursive.inlined);
  EXPECT_EQ(recursive.inlined->calls.size(), 1u);
  EXPECT_EQ(count(*recursive.inlined, Op::call), 1u) << "followed once, then a call";
}

TEST(Inline, GrowthIsBounded) {
  std::string functions = ".func f0()\n{\ntrap;\nret;\n}\n";
  for (int i = 1; i < 15; ++i) {
    const std::string inner = "call f" + std::to_string(i - 1) + ";\n";
    functions += ".func f" + std::to_string(i) + "()\n{\n" + inner + inner + inner + "ret;\n}\n";
  }
  const Program program = followed(functions, "call f14;");
  ASSERT_TRUE(program.inlined);
  EXPECT_LE(program.inlined->function.instructions.size(), 2 * Inlined::kMaxInstructions);
  EXPECT_GT(count(*program.inlined, Op::call), 0u);
}

}  // namespace
}  // namespace ptxkit::flow
