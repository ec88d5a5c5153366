// Damaged PTX through the whole analyzer: cut anywhere, a line gone or twice, a byte changed. Whatever comes in, there
// is a status and a report, the same one every time, and no crash. What still parses is what rules meet in no
// compiler's output: loops without a cursor, stores of nothing, barriers in odd places.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/report/document.hpp"
#include "analyzer/report/json.hpp"
#include "analyzer/report/text.hpp"
#include "analyzer/rules/score.hpp"
#include "kernels/probes/probes.hpp"
#include "support/file.hpp"

namespace ptxkit {
namespace {

constexpr size_t kCutCount = 40;
constexpr size_t kChangedByteCount = 60;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

// How often each status came out, so that a test can say that it met both kinds of texts.
struct Tally {
  size_t parsed_count = 0, refused_count = 0;

  void examine(const std::string& text) {
    report::AnalysisOptions options;
    options.rules.evidence = &rules::shipped_evidence();
    const report::FileAnalysis file = report::analyze(text, "damaged.ptx", options);
    const bool refused = file.status == rules::Status::unparsable;
    EXPECT_EQ(refused, !file.parsed.diagnostics.empty());
    EXPECT_EQ(refused, !file.score.has_value());
    EXPECT_FALSE(file.kernels.empty());
    EXPECT_THAT(whole(report::text_document({.verbose = true}), {&file, 1}), testing::HasSubstr("damaged.ptx: "));
    EXPECT_FALSE(whole(report::json_document(options), {&file, 1}).empty());
    ++(refused ? refused_count : parsed_count);
  }
};

// Kernels of every kind the rules look at: loops, barriers, shared memory, calls of collectives.
std::vector<std::string> texts() {
  std::vector<std::string> found;
  for (const char* path : {"fkr_tests/cli/ptx-debug/inputs/misaligned.ptx", "fkr_tests/cli/ptx-debug/inputs/poor.ptx",
                           "docs/examples/misaligned_cursor.ptx"}) {
    found.push_back(read_file(path).value_or(""));
    EXPECT_FALSE(found.back().empty()) << path;
  }
  found.push_back(kernels::probe_ptx("same_loop_one_u32_load_step_3", kernels::ProbeOffset::parameter));
  found.push_back(kernels::probe_ptx("f021_cvta_shared_generic_st", kernels::ProbeOffset::zero));
  found.push_back(kernels::probe_ptx("f081_ld_shared_u32_shfl_sync_st_global", kernels::ProbeOffset::one));
  return found;
}

TEST(DamagedPtx, cut_anywhere) {
  Tally tally;
  for (const std::string& text : texts()) {
    for (size_t i = 0; i <= kCutCount; ++i) tally.examine(text.substr(0, text.size() * i / kCutCount));
  }
  EXPECT_GT(tally.refused_count, 0u);
  EXPECT_GT(tally.parsed_count, 0u);
}

TEST(DamagedPtx, a_line_gone_or_twice) {
  Tally tally;
  for (const std::string& text : texts()) {
    const std::vector<std::string> lines = lines_of(text);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::vector<std::string> fewer = lines;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      tally.examine(joined(fewer));
      std::vector<std::string> more = lines;
      more.insert(more.begin() + static_cast<ptrdiff_t>(i), lines[i]);
      tally.examine(joined(more));
    }
  }
  EXPECT_GT(tally.refused_count, 0u);
  EXPECT_GT(tally.parsed_count, 0u);
}

TEST(DamagedPtx, lines_in_another_order) {
  Tally tally;
  std::mt19937 random(20260101);
  for (const std::string& text : texts()) {
    std::vector<std::string> lines = lines_of(text);
    for (size_t round = 0; round < kChangedByteCount; ++round) {
      std::swap(lines[random() % lines.size()], lines[random() % lines.size()]);
      tally.examine(joined(lines));
      if (round % 4 == 3) lines = lines_of(text);
    }
  }
  EXPECT_GT(tally.refused_count, 0u);
  EXPECT_GT(tally.parsed_count, 0u);
}

TEST(DamagedPtx, a_byte_changed) {
  Tally tally;
  std::mt19937 random(20260101);
  for (const std::string& text : texts()) {
    for (size_t round = 0; round < kChangedByteCount; ++round) {
      std::string changed = text;
      changed[random() % changed.size()] = static_cast<char>(random());
      tally.examine(changed);
    }
  }
  EXPECT_GT(tally.refused_count, 0u);
}

TEST(DamagedPtx, is_judged_the_same_every_time) {
  for (const std::string& text : texts()) {
    const auto judge = [&] {
      const report::AnalysisOptions options;
      const report::FileAnalysis file = report::analyze(text.substr(0, text.size() * 3 / 4), "damaged.ptx", options);
      return whole(report::json_document(options), {&file, 1});
    };
    EXPECT_EQ(judge(), judge());
  }
}

}  // namespace
}  // namespace ptxkit
