// The text report, byte for byte.
#include "analyzer/report/text.hpp"

#include <gmock/gmock.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/tree.hpp"
#include "fkr_tests/unit/analyzer/report/sample.hpp"
#include "support/result.hpp"

namespace ptxkit::report {
namespace {

std::string text_of(const FileAnalysis& file, const TextOptions& options) {
  return whole(text_document(options), {&file, 1});
}

TEST(Text, shows_everything_that_a_finding_has) {
  EXPECT_EQ(text_of(sample_file(), {}),
            "lz4.ptx:11:2: critical: 4-byte load at an address that is 1 modulo 4 "
            "[F051 UnalignedMemoryAccess, proved]\n"
            "    11 |  ld.shared.u32 %value, [%at+1]; // cafe\n"
            "       |  ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
            "  source: lz4.cpp:42:7\n"
            "  path: 1 step\n"
            "        10 | mov.u32 %at, buffer                       the address begins here\n"
            "  assumes: first assumption\n"
            "  assumes: second assumption\n"
            "  witness: thread (5, any, any), against thread (6, any, any), iteration 3, address 9, of buffer\n"
            "  evidence: h200-r580: something\n"
            "  remedy: load bytes\n"
            "\n"
            "kernel compress: score 39.0 (3 of 6 points; at most 39 with a critical finding): 2 survived, 1 refuted, 1 "
            "undecided, 1 n/a\n"
            "  undecided    F036 MissingBarrierSync: the size of the CTA is unknown\n"
            "  refuted   -3 F051 UnalignedMemoryAccess: one access is misaligned\n"
            "  1 note, shown with --verbose\n"
            "\n"
            "lz4.ptx: score 39.0, 1 critical finding, 5 of " +
                std::to_string(kRuleCount) + " rules ran (exit 3)\n");
}

TEST(Text, verbose_adds_notes_and_every_verdict_in_the_order_of_the_file) {
  const std::string text = text_of(sample_file(), {.verbose = true});
  EXPECT_LT(text.find("lz4.ptx:10:5: info: an aligned site [F081 LoadedValueBug, possible]"),
            text.find("lz4.ptx:11:2"));
  EXPECT_THAT(text, testing::HasSubstr("  survived  +1 F001 MissingEntryPoint\n"));
  EXPECT_THAT(text, testing::HasSubstr("  n/a          F054 SharedBounds\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("shown with --verbose")));
}

TEST(Text, colour_is_only_where_it_is_asked_for) {
  EXPECT_THAT(text_of(sample_file(), {}), testing::Not(testing::HasSubstr("\x1b")));
  EXPECT_THAT(text_of(sample_file(), {.colour = true}), testing::HasSubstr("\x1b[1;31mcritical:\x1b[0m"));
}

TEST(Text, shows_the_line_of_the_source_where_it_is_at_hand) {
  TextOptions options;
  options.source_line = [](const std::string& ptx, const std::string& file, uint32_t line) {
    return std::optional(ptx + "|" + file + "|" + std::to_string(line) + "\x1b");
  };
  EXPECT_THAT(text_of(sample_file(), options),
              testing::HasSubstr("  source: lz4.cpp:42:7\n        42 | lz4.ptx|lz4.cpp|42?\n"));
}

TEST(Text, several_files_close_with_the_strongest_status) {
  const FileAnalysis files[] = {sample_file(), unreadable("gone.ptx", Error{"cannot open", "gone.ptx", ""})};
  EXPECT_THAT(whole(text_document({}), files),
              testing::EndsWith("gone.ptx: not examined (exit 11)\n2 files: exit 11\n"));
}

TEST(Text, a_very_long_line_is_cut_around_the_statement) {
  FileAnalysis file = sample_file();
  std::string text = kSampleText;
  text.insert(sample_offset("\tld.shared"), std::string(1000, ' '));
  text.insert(text.find("// caf"), std::string(1000, ' '));
  file.parsed = ptx::parse(text, file.path);
  file.kernels[0].verdicts[2].result.findings[0].at = static_cast<ptx::Offset>(text.find("ld.shared"));
  const std::string out = text_of(file, {});
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find('\n', at);
    EXPECT_LT(end - at, 200u);
    at = end + 1;
  }
  EXPECT_THAT(out, testing::HasSubstr(std::string(80, ' ') + "ld.shared.u32 %value, [%at+1];"));
}

TEST(Text, control_bytes_of_the_input_never_reach_the_terminal) {
  EXPECT_EQ(text_of(unreadable("a\x1b]0;b\x07.ptx", Error{"w", "w", ""}), {}), "a?]0;b?.ptx: not examined (exit 11)\n");
}

}  // namespace
}  // namespace ptxkit::report
