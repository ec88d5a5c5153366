// The tutorial shows kernels that compile and assemble. package.kernel_project follows it outside of the repository.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "builder/dsl.hpp"
#include "fkr_tests/unit/builder/assemble.hpp"

namespace ptxkit {
namespace {

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The fenced blocks of `language` in a document.
std::vector<std::string> blocks_of(const std::string& document, const std::string& language) {
  std::vector<std::string> found;
  const std::string open = "```" + language + "\n";
  for (size_t at = document.find(open); at != std::string::npos; at = document.find(open, at + 1)) {
    const size_t begin = at + open.size();
    found.push_back(document.substr(begin, document.find("```\n", begin) - begin));
  }
  return found;
}

TEST(Tutorial, ShowsWhatIsCompiled) {
  const std::string source = read("fkr_tests/unit/builder/tutorial.cpp");
  const std::vector<std::string> blocks = blocks_of(read("docs/tutorial.md"), "cpp");
  ASSERT_EQ(blocks.size(), 4u);
  for (const std::string& block : blocks) EXPECT_THAT(source, ::testing::HasSubstr(block));
}

TEST(Tutorial, KernelsAreFoundByTheirRegistration) {
  std::vector<std::string> names;
  for (const dsl::KernelDefinition& kernel : dsl::registered_kernels()) names.push_back(kernel.spec.name);
  EXPECT_THAT(names, ::testing::ElementsAre("add_one", "count_newlines", "hash_words", "reverse_tiles"));
}

TEST(Tutorial, KernelsAssembleForEveryTarget) {
  if (!testing::has_ptxas()) GTEST_SKIP() << "no ptxas on this machine";
  for (const dsl::KernelDefinition& kernel : dsl::registered_kernels()) {
    for (const unsigned sm : {75u, 80u, 90u}) {
      for (const dsl::Variant variant : {dsl::Variant::release, dsl::Variant::checked, dsl::Variant::debug}) {
        EXPECT_EQ(testing::assemble(dsl::emit_ptx(kernel, {.sm = sm, .variant = variant}), sm), "") << kernel.spec.name;
      }
    }
  }
}

}  // namespace
}  // namespace ptxkit
