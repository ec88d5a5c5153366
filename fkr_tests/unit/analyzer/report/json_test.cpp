// The JSON report has every field of docs/reports.md and is deterministic.
#include "analyzer/report/json.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/analyze/identity.hpp"
#include "analyzer/rules/table.hpp"
#include "fkr_tests/unit/analyzer/report/sample.hpp"
#include "support/result.hpp"

namespace ptxkit::report {
namespace {

using Json = nlohmann::json;

std::string json_of(const FileAnalysis& file) {
  const AnalysisOptions options;
  return whole(json_document(options), {&file, 1});
}

TEST(Json, holds_what_was_judged_and_the_outcome) {
  const Json json = Json::parse(json_of(sample_file()));
  EXPECT_EQ(json["schema"], "ptxkit-report-1");
  EXPECT_EQ(json["tool"]["version"], tool_version());
  EXPECT_EQ(json["profile"], "root-cause");
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["rules"]["total"], kRuleCount);
  EXPECT_EQ(json["rules"]["ran"], 5);
  EXPECT_TRUE(json["min_score"].is_null());
  const Json& file = json["files"][0];
  EXPECT_EQ(file["xxh128"], "00112233445566778899aabbccddeeff");
  EXPECT_EQ(file["version"], "8.0");
  EXPECT_EQ(file["target"], "sm_75");
  EXPECT_EQ(file["score"], 39.0);
  EXPECT_EQ(file["critical_count"], 1);
  const Json& kernel = file["kernels"][0];
  EXPECT_EQ(kernel["name"], "compress");
  EXPECT_EQ(kernel["line"], 5);
  EXPECT_EQ(kernel["earned"], 3);
  EXPECT_EQ(kernel["lost"], 3);
  EXPECT_EQ(kernel["counts"]["survived"], 2);
  EXPECT_EQ(kernel["verdicts"].size(), 5u);
  EXPECT_EQ(kernel["verdicts"][1]["basis"], "the size of the CTA is unknown");
}

TEST(Json, holds_everything_that_a_finding_has) {
  const Json json = Json::parse(json_of(sample_file()));
  const Json expected = Json::parse(R"({
    "severity": "critical", "tier": "proved", "message": "4-byte load at an address that is 1 modulo 4",
    "line": 11, "column": 2, "ptx": "ld.shared.u32 %value, [%at+1]",
    "source": [{"file": "lz4.cpp", "line": 42, "column": 7}],
    "path": [{"line": 10, "column": 5, "ptx": "mov.u32 %at, buffer", "what": "the address begins here"}],
    "assumptions": ["first assumption", "second assumption"],
    "witness": {"tid": [5, null, null], "other_tid": [6, null, null], "iteration": 3, "address": 9,
                "note": "of buffer"},
    "evidence": "h200-r580: something", "remedy": "load bytes",
    "fingerprint": "494e2c10db1ccb14"})");  // pinned: users' baselines depend on it
  EXPECT_EQ(json["files"][0]["kernels"][0]["verdicts"][2]["findings"][0], expected);
  const Json& note = json["files"][0]["kernels"][0]["verdicts"][4]["findings"][0];
  EXPECT_TRUE(note["witness"].is_null());
  EXPECT_EQ(note["source"], Json::array());
}

TEST(Json, a_file_that_cannot_be_read_has_an_error_and_nothing_else) {
  const Json json = Json::parse(json_of(unreadable("gone.ptx", Error{"cannot open", "gone.ptx", ""})));
  EXPECT_EQ(json["exit_code"], 11);
  EXPECT_EQ(json["files"][0],
            Json::parse(R"({"path": "gone.ptx", "exit_code": 11, "error": "gone.ptx: cannot open"})"));
}

TEST(Json, bytes_that_are_no_utf8_do_not_break_it) {
  EXPECT_FALSE(Json::parse(json_of(unreadable("\xff\xfe.ptx", Error{"\xff", "", ""}))).is_discarded());
}

TEST(Json, a_file_is_written_when_it_is_added_and_not_kept) {
  const AnalysisOptions options;
  const auto document = json_document(options);
  const FileAnalysis file = sample_file();
  std::string all = document->begin();
  Totals totals;
  for (int i = 0; i < 2; ++i) {
    totals.add(file);
    const std::string piece = document->add(file);
    EXPECT_THAT(piece, testing::HasSubstr("first assumption"));
    all += piece;
  }
  const std::string end = document->end(totals);
  EXPECT_THAT(end, testing::Not(testing::HasSubstr("first assumption")));
  const Json json = Json::parse(all + end);
  EXPECT_EQ(json["files"].size(), 2u);
  EXPECT_EQ(json["files"][0], json["files"][1]);
}

TEST(Json, is_the_same_every_time) { EXPECT_EQ(json_of(sample_file()), json_of(sample_file())); }

TEST(Json, lists_the_whole_catalogue) {
  const Json json = Json::parse(rules_json());
  ASSERT_EQ(json["rules"].size(), rules::catalogue().size());
  EXPECT_EQ(json["rules"][50]["id"], "F051");
  EXPECT_EQ(json["rules"][50]["must_prove"], true);
  EXPECT_EQ(json["rules"][50]["implemented"], true);
  EXPECT_EQ(json["rules"][100]["implemented"], true);
}

TEST(Identity, is_the_published_hash) {
  // The hash of the empty text that the xxHash project publishes.
  EXPECT_EQ(xxh128_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_NE(xxh128_hex("a"), xxh128_hex("b"));
}

}  // namespace
}  // namespace ptxkit::report
