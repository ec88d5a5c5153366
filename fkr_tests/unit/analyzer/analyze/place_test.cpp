// Places in PTX and source, also in texts that no compiler wrote.
#include "analyzer/analyze/place.hpp"

#include <gtest/gtest.h>

#include "fkr_tests/unit/analyzer/report/sample.hpp"

namespace ptxkit::report {
namespace {

TEST(Place, follows_inlined_locations_outwards_and_survives_a_cycle) {
  ptx::Module module;
  module.files = {{1, "a.cpp"}};
  module.locations = {{1, 10, 2, 1, "inner"}, {7, 20, 3, ptx::kNone, ""}};
  const auto places = source_places(module, 0);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[0].file, "a.cpp");
  EXPECT_EQ(places[0].line, 10u);
  EXPECT_EQ(places[1].file, "file 7");
  EXPECT_TRUE(source_places(module, ptx::kNone).empty());
  module.locations[1].inlined_at = 0;
  EXPECT_LE(source_places(module, 0).size(), 64u);
}

TEST(Place, a_statement_ends_at_its_semicolon_or_line) {
  const auto parsed = ptx::parse(kSampleText, "a.ptx");
  EXPECT_EQ(statement_at(parsed.module, sample_offset("ret;")), "ret");
  EXPECT_EQ(statement_at(parsed.module, sample_offset(".visible")), ".visible .entry compress()");
  EXPECT_EQ(statement_at(parsed.module, 1u << 30), "");
}

TEST(Place, diagnostics_are_rendered_line_by_line_and_safe_for_a_terminal) {
  const auto parsed = ptx::parse("\x1b[31m;", "a.ptx");
  ASSERT_FALSE(parsed.diagnostics.empty());
  const std::string text = rendered(parsed);
  EXPECT_EQ(text.find('\x1b'), text.npos);
  EXPECT_TRUE(text.starts_with("a.ptx:1:1: error: "));
  EXPECT_TRUE(text.ends_with('\n'));
}

}  // namespace
}  // namespace ptxkit::report
