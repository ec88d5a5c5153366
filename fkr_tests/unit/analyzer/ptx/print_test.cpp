// Printing: the canonical text, its stability, and that ptxas assembles it to the same machine code.
#include "analyzer/ptx/print.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"
#include "fkr_tests/unit/analyzer/ptx/form_sample.hpp"

namespace ptxkit::ptx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

// Prints, and checks that the output parses and prints to itself.
std::string print_stable(const std::string& text) {
  const ParseResult first = parse(text, "source.ptx");
  for (const Diagnostic& diagnostic : first.diagnostics) ADD_FAILURE() << render(first.module, diagnostic);
  std::string printed = print(first.module);
  const ParseResult second = parse(printed, "printed.ptx");
  for (const Diagnostic& diagnostic : second.diagnostics) ADD_FAILURE() << render(second.module, diagnostic);
  EXPECT_EQ(print(second.module), printed);
  return printed;
}

TEST(Print, WritesOneCanonicalForm) {
  EXPECT_EQ(print_stable(std::string(kHeader) +
                         ".global .b8 t[3]={104,0x69};.global .u64 q[2]={generic(t)+1,t};"
                         ".const .f32 c[2][2]={{1.5},{2.0,3.0}};\n"
                         ".extern .shared .align 16 .b8 s[];\n"
                         ".extern .func (.param .b32 r) f(.param .b32 a);\n"
                         ".visible .entry k(.param .u64 .ptr .global .align 8 p,.param .align 4 .b8 b[12]).maxntid 64\n"
                         "{ .reg .b32 %r<9>; .reg .b64 %l<3>; .reg .pred x; .reg .f32 y; // gone\n"
                         "setp.lt .s32 x,%r1,-5;@!x ld.shared.v2.u32 {%r2,_},[s+8];\n"
                         "{ .param .b32 i; .param .b32 o; call.uni (o),f,(i); }\n"
                         "mov.f32 y,0f3f800000; bra L; L: st.global.u32 [%l1+-4],%r3; ret; }\n"),
            std::string(kHeader) +
                ".global .align 1 .b8 t[3] = {104, 105};\n"
                ".global .align 8 .u64 q[2] = {generic(t)+1, t};\n"
                ".const .align 4 .f32 c[2][2] = {{0f3FC00000, 0f00000000}, {0f40000000, 0f40400000}};\n"
                ".extern .shared .align 16 .b8 s[];\n"
                ".extern .func (.param .align 4 .b32 r) f (.param .align 4 .b32 a)\n;\n"
                ".visible .entry k (.param .align 8 .u64 .ptr .global .align 8 p, .param .align 4 .b8 b[12])\n"
                ".maxntid 64, 1, 1\n"
                "{\n\t.reg .b32 %r<9>;\n\t.reg .b64 %l<3>;\n\t.reg .pred x;\n\t.reg .f32 y;\n"
                "\tsetp.lt.s32 x, %r1, -5;\n\t@!x ld.shared.v2.u32 {%r2, _}, [s+8];\n"
                "\t{\n\t\t.param .align 4 .b32 i;\n\t\t.param .align 4 .b32 o;\n\t\tcall.uni (o), f, (i);\n\t}\n"
                "\tmov.f32 y, 0f3F800000;\n\tbra L;\nL:\n\tst.global.u32 [%l1+-4], %r3;\n\tret;\n}\n\n");
}

TEST(Print, IsStableForEveryForm) {
  for (const Form& form : all_forms()) {
    if (form.last_version < 90) continue;
    Sample sample = make_sample(form, 1);
    if (sample.target.find('-') == std::string::npos) sample.version = 90;
    print_stable(make_module(sample));
  }
}

// The machine code of a text; empty where ptxas rejects it.
std::string assemble(const std::string& text, std::string_view target, const fs::path& folder) {
  const fs::path source = folder / "in.ptx", image = folder / "out.cubin";
  std::ofstream(source) << text;
  fs::remove(image);
  const std::string command =
      "ptxas -arch=" + std::string(target) + " -o " + image.string() + " " + source.string() + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) return {};
  std::ifstream stream(image, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Print, PtxasMakesTheSameMachineCode) {
  if (std::system("ptxas --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "NOT RUN: ptxas is not on PATH";
  std::string pattern = (fs::temp_directory_path() / "ptxkit-print-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path folder = pattern;
  unsigned count = 0;
  for (const auto& entry : fs::directory_iterator("fkr_tests/golden")) {
    if (entry.path().extension() != ".ptx") continue;
    std::ifstream stream(entry.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const ParseResult result = parse(text, entry.path().string());
    if (result.module.target_sm < 75) continue;
    const std::string before = assemble(text, result.module.target, folder);
    EXPECT_FALSE(before.empty()) << entry.path();
    EXPECT_EQ(before, assemble(print(result.module), result.module.target, folder)) << entry.path();
    ++count;
  }
  fs::remove_all(folder);
  EXPECT_GT(count, 0u);
}

}  // namespace
}  // namespace ptxkit::ptx
