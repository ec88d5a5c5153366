// Which operands instructions accept, by kind and register type, as recorded from ptxas (fkr_tests/ptxas/operands.py
// repeats the measurement where ptxas is installed).
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "analyzer/ptx/diagnostic.hpp"

namespace ptxkit::ptx {
namespace {

TEST(OperandKinds, AreTakenAndRefusedAsByPtxas) {
  std::ostringstream stream;
  stream << std::ifstream(PTXAS_TEST_FOLDER "/operand_kinds.ptx").rdbuf();
  const std::string module = stream.str();
  const size_t place = module.find("INSTRUCTION");
  ASSERT_NE(place, std::string::npos);
  std::ifstream kinds(PTXAS_TEST_FOLDER "/operand_kinds.txt");
  size_t taken = 0, refused = 0;
  for (std::string line; std::getline(kinds, line);) {
    if (line.starts_with('#')) continue;
    const std::string instruction = line.substr(2);
    std::string text = module;
    text.replace(place, std::string_view("INSTRUCTION").size(), instruction);
    const ParseResult result = parse(std::move(text), "kind.ptx");
    std::string said;
    for (const Diagnostic& each : result.diagnostics) said += render(result.module, each);
    EXPECT_EQ(result.diagnostics.empty(), line[0] == '+') << line << "\n" << said;
    ++(line[0] == '+' ? taken : refused);
  }
  EXPECT_GT(taken, 80u);
  EXPECT_GT(refused, 100u);
}

// With independent texture mode an instruction names a sampler after the texture.
TEST(OperandKinds, IndependentTexturesNeedASampler) {
  const auto refuses = [](std::string_view mode, std::string_view sampler) {
    const std::string text = ".version 9.0\n.target sm_90" + std::string(mode) +
                             "\n.address_size 64\n.entry k() {\n.reg .f32 %f<9>; .reg .u64 %l<3>;\n"
                             "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%l1, " +
                             std::string(sampler) + "{%f5, %f6}];\nret;\n}\n";
    return !parse(text, "texture.ptx").diagnostics.empty();
  };
  EXPECT_FALSE(refuses("", ""));
  EXPECT_FALSE(refuses(", texmode_unified", ""));
  EXPECT_FALSE(refuses(", texmode_independent", "%l2, "));
  EXPECT_TRUE(refuses(", texmode_independent", ""));
}

}  // namespace
}  // namespace ptxkit::ptx
