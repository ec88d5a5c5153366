// Mistakes that do not occur in the repository's files or their damaged copies, each with words of its message, and
// similar texts that are valid.
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/print.hpp"

namespace ptxkit::ptx {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

std::string module_of(std::string_view text) { return std::string(kHeader) + std::string(text); }

std::string in_kernel(std::string_view body) {
  return module_of(
      ".global .texref tex; .global .surfref srf; .global .b32 g[4]; .shared .b32 s[4];\n"
      ".func callee() { ret; } .visible .entry other() { ret; }\n.visible .entry k(.param .u64 p)\n{\n"
      ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .v2 .b32 %v<2>; .reg .b64 %l<9>; .reg .f32 %f<9>; .reg .pred %p<9>;\n" +
      std::string(body) + "\nret;\n}\n");
}

std::string messages_of(const std::string& text) {
  std::string all;
  for (const Diagnostic& diagnostic : parse(text, "test.ptx").diagnostics) all += diagnostic.message + "\n";
  return all;
}

struct Mistake {
  std::string_view text, message;
};

TEST(Messages, OfModules) {
  const Mistake mistakes[] = {
      {".global .attribute(.shared) .b32 x;", "expected '.managed' or '.unified'"},
      {".shared .attribute(.managed) .b32 x;", "'x' is .managed, which only .global variables are"},
      {".common .shared .b32 x[4];", "'x' is .common, which only .global variables are"},
      {".global .v4 .b64 x;", "a vector has at most 128 bits, found .v4 .b64"},
      {".global .b32 x[2][0];", "only the first size of an array may be left open, found 0"},
      {".global .f16 x = 1;", "variables of .f16 have no initialisers"},
      {".global .v2 .b32 x = {1, 2, 3};", "expected 2 elements of a vector, found 3"},
      {".global .b32 x[2][2] = {{1, 2, 3}, {4}};", "3 elements in a row of 2"},
      {".global .b32 x[2][2000000000] = {{1}, {2}};", "an initialiser list leaves out more than"},
      {".shared .b32 s; .global .u64 x = s;", "'s' is in .shared, its address is no constant"},
      {".func f() { ret; } .global .u64 x = generic(f);", "'f' is a function, generic() takes variables"},
      {".global .b32 g[4]; .global .u64 x = g+1.5;", "an offset is an integer"},
      {".func f() { ret; } .global .u64 x = f+4;", "no offset behind a function"},
      {".global .texref x = 3;", "fields in braces"},
      {".global .texref x = {colour = 1};", "expected a field of a .texref, found 'colour'"},
      {".global .samplerref x = {width = 1};", "expected a field of a .samplerref, found 'width'"},
      {".global .surfref x = {filter_mode = nearest};", "expected a field of a .surfref, found 'filter_mode'"},
      {".global .samplerref x = {filter_mode = cubic};", "'cubic' is no value of a field"},
      {".global .samplerref x = {filter_mode nearest};", "expected '='"},
      {".global .samplerref x = {filter_mode = nearest;", "expected '}'"},
      {".global .u64 x = (.u64)1.5;", "only integers are cast"},
      {".global .u64 x = ~1.5;", "'~' needs an integer"},
      {".global .u64 x = 1.5 | 2;", "'|' needs integers on both sides"},
      {".global .f64 x = 1e999;", "does not fit an f64"},
      {".global .u64 x = 1 ? 2;", "expected ':'"},
      {".func (.param .b32 a, .param .b32 b) f() { ret; }", "several results need the space .reg"},
      {".func f(.param .b8 a[], .param .b32 b) { ret; }", "only the last parameter may be without a size, 'a' is not"},
      {".entry e(.param .b8 a[]) { ret; }", "'a' has no size, which only the last parameter of a function lacks"},
      {".func f(.reg .b32 a[2]) { ret; }", "'a' is a register and cannot be an array"},
      {".entry e(.param .b32 a[2][2]) { ret; }", "'a' is a parameter of an entry, which has one dimension"},
      {".func f(.param .texref a) { ret; }", "'a' is a .texref, which only entries take"},
      {".entry e() .maxntid 1, 2, 3, 4 { ret; }", "expected at most three dimensions"},
      {".entry e() .maxntid 32 .reqntid 32 { ret; }", "'.maxntid' and '.reqntid' exclude each other"},
      {".entry e() .reqnctapercluster 2 .maxclusterrank 4 { ret; }",
       "'.reqnctapercluster' and '.maxclusterrank' exclude each other"},
      {".entry e() .blocksareclusters { ret; }", "'.blocksareclusters' needs '.reqntid' and '.reqnctapercluster'"},
      {".func f() { ret; } .func g(); .weak .func w() { ret; } .alias g, w;", "'w' is .weak and cannot have an alias"},
      {".func f(.param .b32 a) { ret; } .func g(); .alias g, f;", "'f' was declared with other parameters or results"},
      {".func f() { ret; } .alias f, f;", "'f' is a function with a body, it cannot be an alias"},
      {".entry e() { ret; } .func g(); .alias g, e;", "'e' is an entry, only functions have aliases"},
      {".alias f, g;", "'f' is not a function declared before"},
      {".section .debug_info { .b8 x }", "'.b8' is no type of addresses in a section"},
      {".section .debug_info { .f32 1 }", "'.f32' is no type of data in a section"},
      {".section .debug_info { .b32 1.5 }", "the data of a section are integers, found a fraction"},
      {".section .debug_info { .b8 -200 }", "'-200' does not fit 8 bits"},
      {".section .debug_info { .b32 end-4 }", "a label"},
      {".section .debug_info { .b32 1, }", "a number"},
      {".section .debug_info { .b64 a+1.5 }", "the data of a section are integers, found a fraction"},
      {".section .debug_info { .foo 1 }", "'.b8', '.b16', '.b32' or '.b64'"},
  };
  for (const auto& [text, message] : mistakes) EXPECT_THAT(messages_of(module_of(text)), HasSubstr(message)) << text;
}

TEST(Messages, OfKernels) {
  const Mistake mistakes[] = {
      {".loc 1 2 3, function_name 4, inlined_at 1 2 3", "a label after 'function_name'"},
      {".loc 1 2 3, function_name f, inlined 1 2 3", "'inlined_at'"},
      {".loc 1 2 3, function_name f, inlined_at 1 9 9", "'inlined_at' names '.loc 1 9 9', which does not precede it"},
      {".param .b32 x<99999999>;", "variables in one declaration"},
      {"st.global.u32 [%l1], %r1+1.5;", "an offset is an integer"},
      {"ld.global.u32 %r1, [%l1+1.5];", "an offset is an integer"},
      {"call other, ();", "'other' is an entry"},
      {"add.u32 %r1, %v1, 1;", "'%v1' of .v2 .b32"},
      {"bar.sync 1.5;", "expected an integer of .u32, found a float"},
      {"add.u32 %r1, %r2, g;", "the variable 'g'"},
      {"ld.global.u32 %r1, callee;", "found the function 'callee'"},
      {"add.u32 %r1, %r2, %tid.x;", "'%tid'"},
      {"add.u32 %r1, %r2, {%r3, %r4};", "a list of 2"},
      {"add.u32 %r1, %r2, [%r3];", "an address"},
      {"L: add.u32 %r1, %r2, L;", "a label"},
      {"add.u32 _, %r2, 1;", "'_'"},
      {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [g, {%f1, %f2}];", "expected a .texref, found the variable 'g'"},
      {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [srf, {%f1, %f2}];", "expected a .texref, found 'srf' of .surfref"},
      {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%r1, {%f1, %f2}];", "64-bit register as handle of a texref"},
      {"ld.global.u32 %r1, [tex];", "'tex' of .texref has no address to read or write at"},
      {"ld.global.u32 %r1, [64];", "found a number, which only .local takes"},
      {"T: .calltargets nowhere; ", "'nowhere' is not a function declared before"},
  };
  for (const auto& [body, message] : mistakes) EXPECT_THAT(messages_of(in_kernel(body)), HasSubstr(message)) << body;
}

TEST(Messages, OfTensorMemory) {
  const std::string head =
      ".version 9.0\n.target sm_100a\n.address_size 64\n.shared .b32 s;\n.entry k() {\n.reg .f32 %f<3>; "
      ".reg .b32 %r<3>;\n";
  EXPECT_THAT(messages_of(head + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [s]; ret; }"),
              HasSubstr("'s' is no address in tensor memory, which a register holds"));
  EXPECT_THAT(messages_of(head + "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%f1]; ret; }"),
              HasSubstr("expected a 32-bit register as address, found '%f1' of .f32"));
}

TEST(Messages, OfVersionsAndTargets) {
  const std::string body =
      "\n.address_size 64\n.global .texref tex;\n.entry k() {\n.reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %l<9>;\n"
      "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [tex, {%r1, %r2}], {%r3, %r4}; ret; }\n";
  EXPECT_EQ(messages_of(".version 4.3\n.target sm_30" + body), "");
  EXPECT_THAT(messages_of(".version 4.2\n.target sm_30" + body),
              HasSubstr("an offset or a depth needs '.version 4.3' or later, the file has 4.2"));
  EXPECT_THAT(messages_of(".version 4.3\n.target sm_20" + body),
              HasSubstr("an offset or a depth needs sm_30 or later, the file has sm_20"));
  EXPECT_THAT(messages_of(".version 1.4\n.target sm_13\n.entry k() { .reg .b32 %r<3>; ld.u32 %r1, [%r2]; ret; }\n"),
              HasSubstr("generic addresses need '.version 2.0' and sm_20 or later, expected a state space"));
}

// Valid texts give no message, and print to a text that parses to the same module.
TEST(Messages, NoneForCorrectText) {
  const std::string_view texts[] = {
      ".global .attribute(.managed) .b32 x;",
      ".global .attribute(.unified(1, 2)) .b32 x;",
      ".global .attribute(.managed, .unified(3, 4)) .b32 x;",
      ".global .texref x = {width = 4, channel_order = 2 + 3, addr_mode_0 = wrap, filter_mode = linear};",
      ".global .surfref x = {};",
      ".weak .func f() { ret; }\n.weak .global .b32 x;",
      ".common .global .b32 x[4];",
      ".func f() { ret; }\n.func g();\n.alias g, f;",
      ".global .u64 x = (.u64)-1 >> 60, y;",
      ".global .u64 x = (.s64)-1 >> 60;",
      ".global .s64 x = 1 ? 2 : 3, y;",
      ".global .u32 x = (3 == 3) && (1 != 2) || 0;",
      ".global .f64 x = 3.5 - 1;",
      ".global .f64 x = -(0f3f800000 / 2.0);",
      ".entry e() .explicitcluster .reqnctapercluster 2, 1, 1 { ret; }",
      ".entry e() .blocksareclusters .reqntid 32 .reqnctapercluster 2 { ret; }",
      ".func f(.param .b8 a[]) { ret; }",
      ".section .debug_info { begin: .b64 begin+4 .b32 end-begin .b8 1, -1 end: }",
      ".global .b8 x[WARP_SZ];",
      ".entry e() .maxntid 1, 1, WARP_SZ { ret; }",
  };
  for (const std::string_view text : texts) {
    const ParseResult parsed = parse(module_of(text), "test.ptx");
    std::string all;
    for (const Diagnostic& diagnostic : parsed.diagnostics) all += diagnostic.message + "\n";
    ASSERT_EQ(all, "") << text;
    const std::string printed = print(parsed.module);
    EXPECT_EQ(messages_of(printed), "") << printed;
    EXPECT_EQ(print(parse(printed, "printed.ptx").module), printed) << text;
  }
}

TEST(Messages, NoneForSamplersOfIndependentMode) {
  EXPECT_EQ(
      messages_of(".version 9.0\n.target sm_90, texmode_independent\n.address_size 64\n.global .samplerref x[2] = "
                  "{{filter_mode = nearest}, {force_unnormalized_coords = 1}};\n"),
      "");
}

}  // namespace
}  // namespace ptxkit::ptx
