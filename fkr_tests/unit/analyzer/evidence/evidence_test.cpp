// Evidence decides a hypothesis from single rows. The tests change each row that could change the decision.
#include "analyzer/evidence/evidence.hpp"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

namespace ptxkit::rules {
namespace {

using testing::HasSubstr;

std::string shipped_text() {
  std::ifstream file("analyzer/evidence/h200-r580.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

EvidenceSet with(const std::string& from, const std::string& to) {
  std::string text = shipped_text();
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  text.replace(at, from.size(), to);
  auto file = parse_evidence(text, "changed.json");
  EXPECT_TRUE(file.has_value()) << file.error().message();
  return {{*file}};
}

std::string error_of(const std::string& json) {
  auto file = parse_evidence(json, "e.json");
  return file ? "no error" : file.error().message();
}

std::string error_of_change(const std::string& from, const std::string& to) {
  std::string text = shipped_text();
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return error_of(text.replace(at, from.size(), to));
}

TEST(Evidence, the_shipped_h200_file_refutes_the_three_hypotheses) {
  for (const char* rule : {"F021", "F081", "F082"}) {
    const auto said = shipped_evidence().refuted_by(rule, 90);
    ASSERT_TRUE(said.has_value()) << rule;
    EXPECT_THAT(*said, HasSubstr("h200-r580: NVIDIA H200 (sm_90), driver 580.159.04, 2026-11-20"));
    EXPECT_FALSE(shipped_evidence().confirmed_by(rule, 90).has_value());
  }
  EXPECT_EQ(*shipped_evidence().refuted_by("F081", 90),
            "h200-r580: NVIDIA H200 (sm_90), driver 580.159.04, 2026-11-20: 5 probes ran where aligned, and gave 716 "
            "where a word access was misaligned");
}

TEST(Evidence, speaks_only_of_rules_with_probes_and_of_targets_the_device_runs) {
  EXPECT_FALSE(shipped_evidence().refuted_by("F051", 90).has_value());
  EXPECT_FALSE(shipped_evidence().refuted_by("", 90).has_value());
  EXPECT_TRUE(shipped_evidence().refuted_by("F081", 70).has_value());
  EXPECT_FALSE(shipped_evidence().refuted_by("F081", 100).has_value());
  EXPECT_FALSE(shipped_evidence().refuted_by("F081", 0).has_value());
  EXPECT_FALSE(EvidenceSet{}.refuted_by("F081", 90).has_value());
}

TEST(Evidence, an_aligned_failure_confirms_and_outweighs_other_files) {
  EvidenceSet set =
      with("\"f081_ld_shared_u32_then_st_global\": [0, ", "\"f081_ld_shared_u32_then_st_global\": [719, ");
  EXPECT_FALSE(set.refuted_by("F081", 90).has_value());
  EXPECT_THAT(set.confirmed_by("F081", 90).value_or(""), HasSubstr("failed although aligned"));
  EXPECT_TRUE(set.refuted_by("F082", 90).has_value());
  set.files.push_back(shipped_evidence().files.front());
  EXPECT_FALSE(set.refuted_by("F081", 90).has_value());
}

TEST(Evidence, a_misaligned_word_that_runs_or_fails_otherwise_refutes_nothing) {
  for (const char* row : {"[0, 0, 716]", "[0, 716, 700]"}) {
    const EvidenceSet set = with("\"f082_ld_shared_u32_then_store_constant_to_computed_address\": [0, 716, 716]",
                                 std::string("\"f082_ld_shared_u32_then_store_constant_to_computed_address\": ") + row);
    EXPECT_FALSE(set.refuted_by("F082", 90).has_value()) << row;
    EXPECT_FALSE(set.confirmed_by("F082", 90).has_value()) << row;
  }
}

TEST(Evidence, byte_accesses_must_run_at_every_offset) {
  const EvidenceSet set = with("\"f081_four_ld_shared_u8_assembled_st_global\": [0, 0, 0]",
                               "\"f081_four_ld_shared_u8_assembled_st_global\": [0, 716, 716]");
  EXPECT_TRUE(set.confirmed_by("F081", 90).has_value());
}

TEST(Evidence, a_missing_probe_leaves_the_question_open) {
  const EvidenceSet set = with("\"f021_cvta_shared_generic_st\": [0, 716, 716],", "");
  EXPECT_FALSE(set.refuted_by("F021", 90).has_value());
  EXPECT_TRUE(set.refuted_by("F081", 90).has_value());
}

TEST(Evidence, every_shipped_row_is_a_known_probe_and_every_known_probe_was_run) {
  EXPECT_EQ(shipped_evidence().files.front().probes.size(), 18u);
  EXPECT_EQ(find_probe("no_such_probe"), nullptr);
}

TEST(EvidenceErrors, name_the_field_what_was_expected_and_what_was_found) {
  EXPECT_THAT(error_of(""), HasSubstr("e.json: evidence: not JSON: byte 1: expected an object, found an empty file"));
  EXPECT_THAT(error_of("{\"device\": "), HasSubstr("not JSON: byte 12"));
  EXPECT_THAT(error_of("{\"device\": 1e999}"), HasSubstr("e.json: evidence: expected numbers up to 1.8e308"));
  EXPECT_THAT(error_of("\x7f"
                       "ELF"),
              HasSubstr("not JSON: byte 1"));
  EXPECT_THAT(error_of("[]"), HasSubstr("expected an object, found array"));
  EXPECT_THAT(error_of("{}"), HasSubstr("'device' is missing"));
  EXPECT_THAT(error_of_change("\"NVIDIA H200\"", "7"), HasSubstr("'device': expected a string, found number"));
  EXPECT_THAT(error_of_change("\"sm_90\"", "\"hopper\""), HasSubstr("expected sm_ and a number, found 'hopper'"));
  EXPECT_THAT(error_of_change("\"sm_90\"", "\"sm_0\""), HasSubstr("found 'sm_0'"));
  EXPECT_THAT(error_of_change("\"note\"", "\"remark\""), HasSubstr("unknown field 'remark'"));
  EXPECT_THAT(error_of_change("[\"0\", \"1\", \"2\"]", "[0, 1, 2]"), HasSubstr("byte offsets as strings, found 0"));
  EXPECT_THAT(error_of_change("[\"0\", \"1\", \"2\"]", "[\"1\"]"), HasSubstr("expected \"0\" as the first offset"));
  EXPECT_THAT(error_of_change("[\"0\", \"1\", \"2\"]", "3"), HasSubstr("expected an array, found number"));
  EXPECT_THAT(error_of_change("\"result_by_offset\": [\"0\", \"1\", \"2\"],", ""),
              HasSubstr("'result_by_offset' is missing"));
  EXPECT_THAT(error_of_change("\"store_constant\"", "\"store_variable\""), HasSubstr("unknown probe 'store_variable'"));
  EXPECT_THAT(error_of_change("[0, 0, 0]", "[0, 0]"), HasSubstr("expected an array of 3 results, one per offset"));
  EXPECT_THAT(error_of_change("[0, 0, 0]", "[0, 0, -1]"), HasSubstr("expected CUresult numbers, found -1"));
  EXPECT_THAT(error_of_change("[0, 0, 0]", "[0, 0, 4294967296]"), HasSubstr("expected CUresult numbers"));
  EXPECT_THAT(error_of("{\"device\":\"d\",\"target_family\":\"sm_90\",\"driver\":\"\",\"date\":\"\",\"method\":\"\","
                       "\"result_by_offset\":[\"0\"]}"),
              HasSubstr("'probes' is missing"));
  EXPECT_THAT(error_of("{\"device\":\"d\",\"target_family\":\"sm_90\",\"driver\":\"\",\"date\":\"\",\"method\":\"\","
                       "\"result_by_offset\":[\"0\"],\"probes\":[]}"),
              HasSubstr("'probes': expected an object"));
}

TEST(EvidenceErrors, a_file_that_cannot_be_read_is_named) {
  const auto file = load_evidence("no/such/evidence.json");
  ASSERT_FALSE(file.has_value());
  EXPECT_THAT(file.error().message(), HasSubstr("no/such/evidence.json: cannot open: No such file"));
}

}  // namespace
}  // namespace ptxkit::rules
