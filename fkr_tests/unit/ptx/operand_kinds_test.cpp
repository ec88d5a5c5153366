// Which operands instructions take, by their kind and the type of their register, as ptxas was heard to say
// (fkr_tests/ptxas/operands.py asks it again where it is installed).
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

}  // namespace
}  // namespace ptxkit::ptx
