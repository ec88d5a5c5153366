// The tree that the parser builds from valid PTX.
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {
namespace {

using testing::ElementsAre;

std::string in_kernel(std::string_view body) {
  return std::string(
             ".version 8.5\n.target sm_90\n.address_size 64\n"
             ".visible .entry k(.param .u64 p, .param .align 8 .b8 q[24])\n{\n") +
         std::string(body) + "\n}\n";
}

ParseResult parse_clean(std::string text) {
  ParseResult result = parse(std::move(text), "test.ptx");
  for (const Diagnostic& diagnostic : result.diagnostics) ADD_FAILURE() << render(result.module, diagnostic);
  return result;
}

TEST(Parser, ReadsHeader) {
  const auto result = parse_clean(".version 8.5\n.target sm_90a, debug\n.address_size 64\n");
  EXPECT_EQ(result.module.version_major, 8u);
  EXPECT_EQ(result.module.version_minor, 5u);
  EXPECT_EQ(result.module.target, "sm_90a");
  EXPECT_EQ(result.module.target_sm, 90u);
  EXPECT_EQ(result.module.target_suffix, 'a');
  EXPECT_THAT(result.module.target_options, ElementsAre("debug"));
  EXPECT_EQ(result.module.address_size, 64u);
}

TEST(Parser, RegistersAreThoseThatAreNamed) {
  const auto result =
      parse_clean(in_kernel(".reg .b32 %r<4000000000>;\n.reg .v4 .f32 v;\nmov.u32 %r3999999999, %tid.x;\n"
                            "add.s32 %r1, %r3999999999, 1;\nret;"));
  const Function& f = result.module.functions.at(0);
  ASSERT_EQ(f.registers.size(), 2u);
  EXPECT_EQ(f.registers[0].name(), "%r3999999999");
  EXPECT_EQ(f.registers[1].name(), "%r1");
  ASSERT_EQ(f.register_declarations.size(), 2u);
  EXPECT_EQ(f.register_declarations[1].vector, 4);
  const auto operands = f.operands(f.instructions[1]);
  ASSERT_EQ(operands.size(), 3u);
  EXPECT_EQ(operands[0].id, 1u);
  EXPECT_EQ(operands[1].id, 0u);
  EXPECT_EQ(operands[2].kind, OperandKind::integer);
  EXPECT_EQ(operands[2].value, 1u);
}

TEST(Parser, InnerScopesHideOuterNames) {
  const auto result =
      parse_clean(in_kernel(".reg .b32 %r<4>;\n{ .reg .b32 %r1; mov.u32 %r1, 0; bra L; L: bra M; }\n"
                            "mov.u32 %r1, 0;\nL: M: ret;"));
  const Function& f = result.module.functions.at(0);
  ASSERT_EQ(f.registers.size(), 2u);
  EXPECT_NE(f.operands(f.instructions[0])[0].id, f.operands(f.instructions[3])[0].id);
  EXPECT_EQ(f.labels.size(), 3u);
  EXPECT_EQ(f.labels[f.operands(f.instructions[1])[0].id].target, 2u);
  EXPECT_EQ(f.labels[f.operands(f.instructions[2])[0].id].target, 4u);
}

TEST(Parser, ReadsAddressesVectorsPairsAndCalls) {
  const auto result = parse_clean(
      ".version 8.5\n.target sm_90\n.address_size 64\n"
      ".extern .shared .align 16 .b8 smem[];\n"
      ".extern .func (.param .b32 r) f(.param .b32 a, .param .b32 b);\n"
      ".entry k() {\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n"
      "ld.global.v2.u32 {%r1, _}, [%rd1+-8];\n"
      "ld.shared.u32 %r2, [smem+16];\n"
      "setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p1;\n"
      "@!%p1 mov.u64 %rd2, smem;\n"
      "{ .param .b32 x; .param .b32 y;\ncall.uni (x), f, (x, y); }\n"
      "ret;\n}\n");
  const Function& f = result.module.functions.at(1);
  const auto load = f.operands(f.instructions[0]);
  EXPECT_EQ(load[0].kind, OperandKind::vector);
  EXPECT_EQ(f.children(load[0])[1].kind, OperandKind::sink);
  EXPECT_EQ(load[1].base, AddressBase::reg);
  EXPECT_EQ(static_cast<int64_t>(load[1].value), -8);
  EXPECT_EQ(f.instructions[0].vector, 2);
  const auto shared = f.operands(f.instructions[1]);
  EXPECT_EQ(shared[1].base, AddressBase::variable);
  EXPECT_EQ(result.module.variables[shared[1].id].name, "smem");
  const auto compare = f.operands(f.instructions[2]);
  EXPECT_EQ(compare[0].kind, OperandKind::pair);
  EXPECT_TRUE(compare[3].negated);
  EXPECT_TRUE(f.instructions[3].guard && f.instructions[3].guard.negated);
  const CallParts parts = call_parts(f, f.instructions[4]);
  ASSERT_TRUE(parts.results != nullptr && parts.target != nullptr && parts.arguments != nullptr);
  EXPECT_EQ(parts.target->kind, OperandKind::function);
  EXPECT_EQ(parts.target->id, 0u);
  EXPECT_EQ(parts.arguments->child_count, 2u);
}

// Like ptxas: an f16x2 register is a 32-bit register for integer instructions too, and mov.b32 may omit parts.
TEST(Parser, TakesPackedHalvesAsIntegersAndOpenPartsOfAWord) {
  const auto result = parse_clean(
      ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() {\n"
      ".reg .f16x2 %x<3>; .reg .b32 %r<3>; .reg .b16 %h<3>; .reg .b8 %c<3>; .reg .b64 %d; .reg .pred %p;\n"
      "add.s32 %x1, %x2, %r1;\nst.global.u32 [%d], %x1;\nsetp.eq.s32 %p, %x1, 0;\ncvt.u32.u16 %x1, %h1;\n"
      "mov.b32 %r1, {%h1, _};\nmov.b32 %r1, {_, %h1};\nmov.b32 %r1, {%c1, _, _, _};\nsetp.lt.s32 _|%p, %r1, 0;\n"
      "ret;\n}\n");
  const Function& f = result.module.functions.at(0);
  EXPECT_EQ(f.children(f.operands(f.instructions[4])[1])[1].kind, OperandKind::sink);
}

TEST(Parser, ChainsInlinedLocations) {
  const auto result = parse_clean(
      ".version 8.5\n.target sm_90\n.address_size 64\n.entry k() {\n.loc 1 7 2\n.loc 1 4 71, function_name $L0, "
      "inlined_at 1 7 2\n"
      ".loc 2 107 3, function_name $L1, inlined_at 1 4 71\nret;\n}\n.file 1 \"a.cu\"\n.file 2 \"b.hpp\", 123, 456\n"
      ".section .debug_str\n{\n$L0:\n.b8 95,90\n}\n");
  const Function& f = result.module.functions.at(0);
  const auto& locations = result.module.locations;
  const Location& inner = locations.at(f.instructions[0].location);
  EXPECT_EQ(inner.file, 2u);
  EXPECT_EQ(inner.line, 107u);
  const Location& middle = locations.at(inner.inlined_at);
  EXPECT_EQ(middle.line, 4u);
  EXPECT_EQ(middle.function_name, "$L0");
  EXPECT_EQ(locations.at(middle.inlined_at).line, 7u);
  EXPECT_EQ(result.module.file(2)->path, "b.hpp");
}

TEST(Parser, ReadsInitializers) {
  const auto result = parse_clean(
      ".version 8.5\n.target sm_90\n.address_size 64\n"
      ".global .align 1 .b8 text[3] = {104, 105};\n"
      ".global .align 8 .u64 s[3] = {1065353216, generic(text), text+2};\n"
      ".const .f32 c[2][2] = {{1.5}, {0f40000000, 0d3ff0000000000000}};\n"
      ".global .u8 bytes[2] = {0xff(text), 0xff00(text)};\n");
  const auto& variables = result.module.variables;
  EXPECT_EQ(variables[1].size_bytes, 24u);
  EXPECT_TRUE(variables[1].initializer[1].generic);
  EXPECT_EQ(variables[1].initializer[2].value, 2u);
  ASSERT_EQ(variables[2].initializer.size(), 4u);
  EXPECT_EQ(variables[2].initializer[0].value, 0x3fc00000u);
  EXPECT_EQ(variables[2].initializer[2].value, 0x40000000u);
  EXPECT_EQ(variables[2].initializer[3].value, 0x3f800000u);
  EXPECT_EQ(variables[3].initializer[1].mask_shift, 1);
}

TEST(Parser, UnknownWordsAreOneMessageEachAndDropNothing) {
  const auto result = parse(in_kernel(".reg .b32 %r<4>;\nfoo.bar %r1, q;\nadd.frob.s32 %r1, %r2, %r3;\n"
                                      "add.s32 %r1, %r2, %r3\nret;"),
                            "test.ptx");
  ASSERT_EQ(result.diagnostics.size(), 3u);
  EXPECT_EQ(result.diagnostics[0].kind, DiagnosticKind::unknown_opcode);
  EXPECT_EQ(result.diagnostics[1].kind, DiagnosticKind::unknown_modifier);
  EXPECT_EQ(result.diagnostics[2].kind, DiagnosticKind::unexpected_token);
  EXPECT_EQ(result.module.position(result.diagnostics[2].at).line, 10u);
  EXPECT_EQ(result.module.functions.at(0).instructions.size(), 4u);
}

}  // namespace
}  // namespace ptxkit::ptx
