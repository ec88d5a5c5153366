// One case for each kind of diagnostic, with the place that it must point to. A kind without a case fails.
#include "analyzer/ptx/diagnostic.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace ptxkit::ptx {
namespace {

constexpr std::string_view kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

struct Case {
  DiagnosticKind kind;
  std::string text;
  std::string at;  // the text at the diagnostic's place begins with this
};

// A case whose text is the body of a kernel.
Case in_body(DiagnosticKind kind, std::string body, std::string at) {
  return {
      kind,
      std::string(kHeader) + ".global .align 4 .b32 g[4];\n.shared .align 16 .b8 s[64];\n" +
          ".func callee(.param .b32 a) { ret; }\n.visible .entry k(.param .u64 p)\n{\n" +
          ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .pred %p<9>;\n" +
          std::move(body) + "\nret;\n}\n",
      std::move(at)};
}

Case at_module(DiagnosticKind kind, std::string text, std::string at) {
  return {kind, std::string(kHeader) + std::move(text), std::move(at)};
}

std::vector<Case> cases() {
  using K = DiagnosticKind;
  std::string deep = "L: ";
  for (int i = 0; i < 300; ++i) deep += "{ ";
  for (int i = 0; i < 300; ++i) deep += "} ";
  return {
      in_body(K::stray_byte, "mov.u32 %r1, \x01 1;", "\x01"),
      at_module(K::unclosed_comment, ".entry k() { ret; } /* never", "/* never"),
      at_module(K::unclosed_string, ".file 1 \"a.cu\n", "\"a.cu"),
      in_body(K::bad_literal, "mov.f32 %f1, 0f3f80;", "0f3f80"),
      in_body(K::bad_literal, "mov.u32 %r1, 08;", "08"),
      in_body(K::literal_out_of_range, "mov.u64 %l1, 99999999999999999999;", "99999999999999999999"),
      in_body(K::bad_expression, "mov.u32 %r1, 1/0;", "/0"),
      at_module(K::bad_initializer, ".global .b8 x[2] = {1, 2, 3};", "{1, 2, 3}"),
      at_module(K::bad_initializer, ".global .f32 x = 5;", "5"),
      at_module(K::bad_initializer, ".shared .b32 x = 5;", "5"),
      {K::missing_version, ".target sm_90\n", ".target"},
      {K::unknown_version, ".version 8.9\n.target sm_90\n", "8.9"},
      {K::unknown_version, ".version 100.0\n.target sm_90\n", "100.0"},
      {K::unknown_version, ".version 9.40\n.target sm_90\n", "9.40"},
      {K::missing_target, ".version 9.0\n.entry k() { ret; }\n", ".entry"},
      {K::missing_target, ".version 9.0\n.target debug\n", "debug"},
      {K::missing_target, ".version 9.0\n.target texmode_unified, sm_90\n", "texmode_unified"},
      {K::unknown_target, ".version 9.0\n.target sm_91\n", "sm_91"},
      {K::target_needs_version, ".version 7.0\n.target sm_90\n", "sm_90"},
      at_module(K::repeated_header, ".version 9.0\n", ".version"),
      at_module(K::repeated_header, ".target sm_90\n", ".target"),
      {K::bad_address_size, ".version 9.0\n.target sm_90\n.address_size 48\n", "48"},
      in_body(K::unexpected_token, "add.s32 %r1, %r2, %r3 ret;", "ret"),
      in_body(K::unexpected_token, "ld.global.u32 %r1, [%l1-4];", "-4"),
      in_body(K::unexpected_token, ";", ";"),
      at_module(K::unexpected_token, ".entry k() { ret; ", ""),
      at_module(K::unknown_directive, ".foo 3;", ".foo"),
      in_body(K::unknown_directive, ".foo 3;", ".foo"),
      at_module(K::misplaced_directive, ".reg .b32 x;", ".reg"),
      at_module(K::misplaced_directive, ".func f() .maxntid 256 { ret; }", ".maxntid"),
      in_body(K::misplaced_directive, ".file 1 \"x\"", ".file"),
      at_module(K::bad_declaration, ".global .align 3 .b32 x;", "3"),
      at_module(K::bad_declaration, ".global .b8 x[];", "x[]"),
      at_module(K::bad_declaration, ".global .pred x;", ".pred"),
      in_body(K::bad_declaration, ".reg .e4m3 x;", ".e4m3"),
      at_module(K::limit_exceeded, ".entry k() {" + deep + "}", "{"),
      at_module(K::limit_exceeded, ".global .b8 x[4000000000][4000000000];", "x["),
      in_body(K::duplicate_label, "L: bra L;\nL: ret;", "L: ret"),
      in_body(K::undefined_label, "bra L;", "L;"),
      in_body(K::undefined_label, "bra L; { L: ret; }", "L; {"),
      in_body(K::undefined_label, "brx.idx %r1, T; T: .branchtargets A; A:", "T; T"),
      in_body(K::undeclared_name, "mov.u32 %r9, 1;", "%r9"),
      in_body(K::undeclared_name, "mov.u32 %r1, x;", "x"),
      in_body(K::duplicate_name, ".reg .b32 x; .reg .b64 x;", "x;\nret"),
      in_body(K::duplicate_name, ".reg .b32 %r3;", "%r3"),
      in_body(K::duplicate_name, ".reg .b32 x3; .reg .b32 x<5>;", "x<5>"),
      at_module(K::duplicate_name, ".entry k() { ret; } .entry k() { ret; }", "k() { ret; }"),
      at_module(K::signature_mismatch, ".func f(.param .b32 a); .func f(.param .b64 a) { ret; }", "f(.param .b64"),
      in_body(K::unknown_opcode, "foo.u32 %r1;", "foo"),
      in_body(K::unknown_modifier, "add.frob.u32 %r1, %r2, %r3;", "frob"),
      in_body(K::unknown_form, "mul.u32 %r1, %r2, %r3;", "mul"),
      in_body(K::unknown_form, "ld.relaxed.global.u32 %r1, [%l1];", "ld"),
      in_body(K::operand_count, "add.u32 %r1, %r2;", "add"),
      in_body(K::operand_count, "add.u32 %r1, %r2, %r3, %r4;", "%r4"),
      in_body(K::operand_kind, "ld.global.u32 %r1, %l1;", "%l1"),
      {K::needs_version, ".version 6.0\n.target sm_70\n.entry k() { .reg .b32 r; activemask.b32 r; ret; }",
       "activemask"},
      in_body(K::needs_target, "add.rn.f32x2 %l1, %l2, %l3;", "add"),
      {K::needs_target, ".version 9.0\n.target sm_80\n.address_size 64\n.entry k() { fence.sc.cluster; }", "fence"},
      in_body(K::load_register, "ld.global.u64 %r1, [%l1];", "%r1"),
      in_body(K::store_register, "st.global.u32 [%l1], %f1;", "%f1"),
      in_body(K::operand_type, "add.u32 %r1, %l2, 1;", "%l2"),
      in_body(K::bad_comparison, "setp.eq.u32 %p1, %f1, %r2;", "%f1"),
      in_body(K::bad_comparison, "setp.lo.s32 %p1, %r1, %r2;", "setp"),
      in_body(K::bad_conversion, "cvt.f32.u32 %f1, %r1;", "cvt"),
      in_body(K::bad_conversion, "cvt.u64.u32 %r1, %r2;", "%r1"),
      in_body(K::address_register, "ld.global.u32 %r1, [%r2];", "[%r2]"),
      in_body(K::address_register, "ld.shared.u32 %r1, [%d2];", "[%d2]"),
      in_body(K::bad_predicate, "@%r1 mov.u32 %r2, 0;", "%r1"),
      in_body(K::bad_predicate, "add.u32 %p1, %r1, %r2;", "%p1"),
      in_body(K::bad_predicate, "selp.u32 %r1, %r1, %r2, %r3;", "%r3"),
      in_body(K::bad_predicate, "setp.lt.s32 _|_, %r1, %r2;", "_,"),
      in_body(K::bad_vector, "mov.b32 %r1, {_, _};", "{_"),
      in_body(K::bad_vector, "ld.global.v4.f32 {%f1, %f2, %f3}, [%l1];", "{%f1"),
      in_body(K::bad_atomic, "atom.global.exch.u32 %r1, [%l1], %r2;", "atom"),
      in_body(K::bad_atomic, "atom.global.add.u32 %r1, [%l1], %f1;", "%f1"),
      in_body(K::bad_vector, "mov.u32 %r1, %r2.x;", ".x"),
      in_body(K::bad_predicate, "@%p1.b0 mov.u32 %r1, 1;", "%p1"),
      in_body(K::unexpected_token, "mov.u32 %r1, %tid.b0;", ".b0"),
      in_body(K::unexpected_token, ".reg .v4 .b32 %v; vadd.u32.u32.u32 %r1, %v.b0, %r2;", ".b0"),
      in_body(K::bad_special_register, "add.u32 %r1, %tid.x, 1;", "%tid"),
      in_body(K::bad_special_register, "mov.u32 %r1, %tid;", "%tid"),
      in_body(K::bad_special_register, "mov.u64 %l1, %clock;", "%clock"),
      in_body(K::immediate_range, "bar.sync 16;", "16"),
      in_body(K::immediate_range, "bar.sync 0, 100;", "100"),
      in_body(K::parameter_write, "st.param.u32 [p], %r1;", "[p]"),
      at_module(K::parameter_write, ".func f(.param .b32 a) { .reg .b32 %r1; st.param.b32 [a], %r1; ret; }", "[a]"),
      at_module(K::operand_kind, ".func (.param .b32 b) f() { .reg .b32 %r1; ld.param.b32 %r1, [b]; ret; }", "[b]"),
      in_body(K::space_mismatch, "ld.global.u32 %r1, [s+4];", "[s+4]"),
      in_body(K::space_mismatch, ".const .b32 c; ld.u32 %r1, [c];", "[c]"),
      in_body(K::operand_kind, "ld.global.u32 _, [%l1];", "_"),
      in_body(K::call_mismatch, "call callee;", "call"),
      in_body(K::call_mismatch, ".param .b32 x, y; call (y), callee, (x);", "call"),
      in_body(K::call_mismatch, ".param .b64 x; call callee, (x);", "x);"),
      in_body(K::call_mismatch, "P: .callprototype _ (.param .b32 _); call %l1, P;", "call %l1"),
  };
}

TEST(Diagnostics, EveryKindHasACaseThatTriggersIt) {
  std::map<DiagnosticKind, int> seen;
  for (const Case& one : cases()) {
    const ParseResult result = parse(one.text, "test.ptx");
    const auto found = std::find_if(result.diagnostics.begin(), result.diagnostics.end(), [&](const Diagnostic& d) {
      return d.kind == one.kind && result.module.text.substr(d.at, one.at.size()) == one.at;
    });
    std::string all;
    for (const Diagnostic& diagnostic : result.diagnostics) all += render(result.module, diagnostic);
    EXPECT_NE(found, result.diagnostics.end()) << "no " << text(one.kind) << " at '" << one.at << "', but:\n" << all;
    // A mistake that leaves the structure of the file intact gives few messages.
    if (one.kind != DiagnosticKind::limit_exceeded && one.text.find("version 9.0\n.target sm_90\n.address") == 0) {
      EXPECT_LE(result.diagnostics.size(), 2u) << all;
    }
    ++seen[one.kind];
  }
#define PTX_DIAGNOSTIC(id, rule) EXPECT_GT(seen[DiagnosticKind::id], 0) << #id " has no case";
#include "analyzer/ptx/diagnostics.def"
#undef PTX_DIAGNOSTIC
}

TEST(Diagnostics, AreReportedTogetherAndInOrder) {
  const ParseResult result = parse(std::string(kHeader) +
                                       ".entry k()\n{\n.reg .b32 %r<3>;\nbra NOWHERE;\nadd.u32 %r1, %r2;\nfoo;\n"
                                       "mov.u32 %r1, %r7;\nret;\n}\n.entry l() { mov.u32 x, 1; ret; }\n",
                                   "test.ptx");
  ASSERT_EQ(result.diagnostics.size(), 5u);
  EXPECT_TRUE(std::is_sorted(result.diagnostics.begin(), result.diagnostics.end(),
                             [](const Diagnostic& a, const Diagnostic& b) { return a.at < b.at; }));
  EXPECT_EQ(result.diagnostics[0].kind, DiagnosticKind::undefined_label);
  EXPECT_EQ(result.diagnostics[4].function, 1u);
  EXPECT_EQ(result.module.functions.size(), 2u);
}

TEST(Diagnostics, RenderPointsAtThePlace) {
  const ParseResult result = parse(std::string(kHeader) + ".entry k() {\n\tfoo.u32 1;\n}\n", "file.ptx");
  ASSERT_EQ(result.diagnostics.size(), 1u);
  EXPECT_EQ(render(result.module, result.diagnostics[0]),
            "file.ptx:5:2: error: unknown instruction 'foo' [F007]\n\tfoo.u32 1;\n\t^~~\n");
}

}  // namespace
}  // namespace ptxkit::ptx
