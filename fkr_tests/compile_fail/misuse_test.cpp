// Each "expect:" comment of misuse.cpp is a test: the compiler refused that line, for that reason.
//
// The compiler runs once, while this program is built (see CMakeLists.txt); the tests read what it wrote. So sixty
// cases cost one parse of the headers, and each still is a test of its own.
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ptxkit {
namespace {

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

struct Expectation {
  std::string name;  // of the function it stands in
  size_t line;
  std::string phrase;
};

void PrintTo(const Expectation& expectation, std::ostream* out) { *out << "line " << expectation.line; }

std::vector<Expectation> expectations() {
  constexpr std::string_view mark = "// expect: ";
  constexpr std::string_view head = "[[maybe_unused]] void ";
  std::vector<Expectation> found;
  std::string function;
  const std::vector<std::string> lines = lines_of(PTXKIT_MISUSE_SOURCE);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].starts_with(head)) function = lines[i].substr(head.size(), lines[i].find('(') - head.size());
    const size_t at = lines[i].find(mark);
    if (at != std::string::npos) found.push_back({function, i + 1, lines[i].substr(at + mark.size())});
  }
  return found;
}

// An error of the compiler with the lines that led to it: "In instantiation of", "required from here".
struct Diagnostic {
  std::string context;
  std::string error;
};

std::vector<Diagnostic> diagnostics() {
  std::vector<Diagnostic> found;
  std::string context;
  for (const std::string& line : lines_of(PTXKIT_MISUSE_LOG)) {
    if (line.find(": note: ") != std::string::npos) {
      context.clear();
    } else if (line.find(": error: ") != std::string::npos) {
      found.push_back({context + line, line});
      context.clear();
    } else {
      context += line + "\n";
    }
  }
  return found;
}

bool mentions(const Diagnostic& diagnostic, size_t line) {
  return diagnostic.context.find("misuse.cpp:" + std::to_string(line) + ":") != std::string::npos;
}

class Misuse : public ::testing::TestWithParam<Expectation> {};

TEST_P(Misuse, DoesNotCompile) {
  std::string seen;
  for (const Diagnostic& diagnostic : diagnostics()) {
    if (!mentions(diagnostic, GetParam().line)) continue;
    if (diagnostic.error.find(GetParam().phrase) != std::string::npos) return;
    seen += diagnostic.error + "\n";
  }
  FAIL() << "line " << GetParam().line << " of misuse.cpp was to be refused with\n  " << GetParam().phrase
         << "\nbut the compiler " << (seen.empty() ? "accepted it" : "said\n" + seen);
}

INSTANTIATE_TEST_SUITE_P(Dsl, Misuse, ::testing::ValuesIn(expectations()),
                         [](const auto& one) { return one.param.name; });

TEST(MisuseFile, HasNoOtherErrors) {
  for (const Diagnostic& diagnostic : diagnostics()) {
    bool expected = false;
    for (const Expectation& expectation : expectations()) expected = expected || mentions(diagnostic, expectation.line);
    EXPECT_TRUE(expected) << diagnostic.context;
  }
}

}  // namespace
}  // namespace ptxkit
