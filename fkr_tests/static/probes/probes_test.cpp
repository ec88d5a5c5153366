// The probes through the analyzer: its static findings must agree with the measured behaviour of the hardware
// (analyzer/evidence/), and must be those that the catalogue demands under both profiles.
#include "kernels/probes/probes.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <ranges>
#include <set>

#include <gmock/gmock.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/evidence/evidence.hpp"
#include "analyzer/report/document.hpp"
#include "analyzer/report/text.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/score.hpp"

namespace ptxkit {
namespace {

using kernels::ProbeOffset;
using rules::Severity;
using rules::Verdict;

constexpr std::string_view kSiteRules[] = {"F021", "F081", "F082"};
constexpr ProbeOffset kConstantOffsets[] = {ProbeOffset::zero, ProbeOffset::one, ProbeOffset::two};

report::FileAnalysis analyzed(std::string_view name, ProbeOffset offset,
                              rules::Profile profile = rules::Profile::root_cause) {
  report::AnalysisOptions options;
  options.rules.profile = profile;
  options.rules.evidence = &rules::shipped_evidence();
  return report::analyze(kernels::probe_ptx(name, offset), std::string(name) + ".ptx", options);
}

const rules::RuleResult& result_of(const report::FileAnalysis& file, std::string_view rule) {
  static const rules::RuleResult kNone;
  for (const report::RuleVerdict& verdict : file.kernels.at(0).verdicts) {
    if (verdict.rule->id == rule) return verdict.result;
  }
  ADD_FAILURE() << rule << " did not run";
  return kNone;
}

std::multiset<std::string_view> severities(const report::FileAnalysis& file, std::string_view rule) {
  std::multiset<std::string_view> found;
  for (const rules::Finding& finding : result_of(file, rule).findings) {
    found.insert(finding.severity == Severity::critical ? "critical"
                 : finding.severity == Severity::info   ? "info"
                                                        : "other");
  }
  return found;
}

// The report as text, for the message of a failed expectation.
std::string words(const report::FileAnalysis& file) {
  return whole(report::text_document({.verbose = true}), {&file, 1});
}

// Probes whose load ptxas deletes because its value is unused. They run although they are misaligned.
const std::set<std::string_view> kMasked = {"ld_shared_u32_unused", "ld_shared_u32_hashed_unused",
                                            "ld_shared_u32_then_load_from_computed_address_unused",
                                            "ld_global_u32_unused"};

const std::vector<std::string_view> kWordSites081 = {
    "f081_ld_shared_u32_then_st_global", "f081_ld_shared_u32_then_st_shared", "f081_ld_shared_u32_membar_cta_st_global",
    "f081_ld_shared_u32_shfl_sync_st_global"};
const std::vector<std::string_view> kSites021 = {"f021_cvta_shared_generic_ld", "f021_cvta_shared_generic_st"};
constexpr std::string_view kSite082 = "f082_ld_shared_u32_then_store_constant_to_computed_address";

TEST(Probes, every_probe_parses_and_is_one_that_evidence_knows) {
  const auto names = kernels::probe_names();
  EXPECT_EQ(names.size(), 18u);
  for (const std::string_view name : names) {
    EXPECT_NE(rules::find_probe(name), nullptr) << name;
    for (const ProbeOffset offset : {ProbeOffset::zero, ProbeOffset::one, ProbeOffset::two, ProbeOffset::parameter}) {
      const auto file = analyzed(name, offset);
      EXPECT_TRUE(file.parsed.diagnostics.empty()) << words(analyzed(name, offset));
    }
  }
  for (const rules::ProbeResult& row : rules::shipped_evidence().files.front().probes) {
    EXPECT_NE(std::ranges::find(names, row.probe), names.end()) << row.probe;
  }
}

TEST(Probes, a_fault_on_the_hardware_is_a_critical_finding_and_a_clean_run_is_none) {
  for (const rules::ProbeResult& row : rules::shipped_evidence().files.front().probes) {
    for (size_t i = 0; i < std::size(kConstantOffsets); ++i) {
      const bool misaligned = row.status[i] == 716 || (kMasked.contains(row.probe) && i != 0);
      const auto file = analyzed(row.probe, kConstantOffsets[i]);
      EXPECT_EQ(file.critical_count() > 0, misaligned) << row.probe << " at offset " << i << "\n"
                                                       << words(analyzed(row.probe, kConstantOffsets[i]));
      EXPECT_EQ(file.status == rules::Status::critical, misaligned) << row.probe;
    }
  }
}

TEST(Probes, an_aligned_site_is_info_names_its_evidence_and_costs_nothing) {
  std::map<std::string_view, std::vector<std::string_view>> sites = {
      {"F081", kWordSites081}, {"F021", kSites021}, {"F082", {kSite082}}};
  sites["F081"].push_back("f081_four_ld_shared_u8_assembled_st_global");
  sites["F082"].push_back("loop_hash_table_u8_loads_store_to_loaded_address");
  for (const auto& [rule, names] : sites) {
    for (const std::string_view name : names) {
      const auto file = analyzed(name, ProbeOffset::zero);
      const rules::RuleResult& result = result_of(file, rule);
      EXPECT_FALSE(result.findings.empty()) << rule << " " << name;
      EXPECT_FALSE(result.loses_points) << words(analyzed(name, ProbeOffset::zero));
      for (const rules::Finding& finding : result.findings) {
        EXPECT_EQ(finding.severity, Severity::info) << words(analyzed(name, ProbeOffset::zero));
        EXPECT_THAT(finding.evidence, testing::HasSubstr("h200-r580")) << name;
      }
    }
  }
}

TEST(Probes, a_misaligned_site_is_critical_and_loses_the_points) {
  for (const ProbeOffset offset : {ProbeOffset::one, ProbeOffset::two, ProbeOffset::parameter}) {
    for (const std::string_view name : kWordSites081) {
      EXPECT_TRUE(severities(analyzed(name, offset), "F081").contains("critical")) << words(analyzed(name, offset));
      EXPECT_TRUE(result_of(analyzed(name, offset), "F081").loses_points);
    }
    for (const std::string_view name : kSites021) {
      EXPECT_TRUE(severities(analyzed(name, offset), "F021").contains("critical")) << words(analyzed(name, offset));
    }
    EXPECT_TRUE(severities(analyzed(kSite082, offset), "F082").contains("critical"))
        << words(analyzed(kSite082, offset));
  }
}

TEST(Probes, four_byte_loads_are_never_critical) {
  for (const ProbeOffset offset : {ProbeOffset::zero, ProbeOffset::one, ProbeOffset::two, ProbeOffset::parameter}) {
    for (const std::string_view name :
         {"f081_four_ld_shared_u8_assembled_st_global", "loop_hash_table_u8_loads_store_to_loaded_address"}) {
      EXPECT_EQ(analyzed(name, offset).critical_count(), 0u) << words(analyzed(name, offset));
    }
  }
}

TEST(Probes, a_word_load_at_a_cursor_that_grows_by_three_is_critical_whatever_the_offset) {
  for (const ProbeOffset offset : {ProbeOffset::zero, ProbeOffset::one, ProbeOffset::two, ProbeOffset::parameter}) {
    const auto file = analyzed("same_loop_one_u32_load_step_3", offset);
    EXPECT_TRUE(severities(file, "F081").contains("critical")) << words(analyzed(file.path, offset));
    EXPECT_EQ(result_of(file, "F051").verdict, Verdict::refuted);
  }
}

TEST(Probes, an_unused_load_is_no_site_but_its_misalignment_is_seen) {
  for (const std::string_view name : kMasked) {
    for (const ProbeOffset offset : kConstantOffsets) {
      const auto file = analyzed(name, offset);
      for (const std::string_view rule : kSiteRules) EXPECT_TRUE(result_of(file, rule).findings.empty()) << name;
      EXPECT_EQ(result_of(file, "F051").verdict, offset == ProbeOffset::zero ? Verdict::survived : Verdict::refuted)
          << words(analyzed(name, offset));
    }
  }
  EXPECT_EQ(result_of(analyzed("store_constant", ProbeOffset::zero), "F081").verdict, Verdict::not_applicable);
}

TEST(Probes, outside_the_sites_a_scalar_offset_is_undecided_and_loses_points_without_being_critical) {
  for (const std::string_view name :
       {"atom_shared_exch_b32", "ld_global_u32_then_st_global", "st_global_u32_at_output_cursor"}) {
    const auto file = analyzed(name, ProbeOffset::parameter);
    EXPECT_EQ(result_of(file, "F051").verdict, Verdict::undecided) << words(analyzed(name, ProbeOffset::parameter));
    EXPECT_EQ(file.critical_count(), 0u) << name;
    EXPECT_GE(file.kernels[0].score.lost, 3u) << name;
  }
}

TEST(Probes, under_profile_pattern_every_site_is_critical_and_a_shuffle_ends_the_taint) {
  const auto pattern = [](std::string_view name) { return analyzed(name, ProbeOffset::zero, rules::Profile::pattern); };
  for (const std::string_view name :
       {"f081_ld_shared_u32_then_st_global", "f081_ld_shared_u32_then_st_shared",
        "f081_ld_shared_u32_membar_cta_st_global", "f081_four_ld_shared_u8_assembled_st_global"}) {
    EXPECT_EQ(severities(pattern(name), "F081").count("critical"), severities(pattern(name), "F081").size()) << name;
    EXPECT_TRUE(severities(pattern(name), "F081").contains("critical")) << words(pattern(name));
  }
  for (const std::string_view name : kSites021) {
    EXPECT_TRUE(severities(pattern(name), "F021").contains("critical")) << words(pattern(name));
  }
  EXPECT_TRUE(severities(pattern(kSite082), "F082").contains("critical")) << words(pattern(kSite082));
  EXPECT_TRUE(severities(pattern("loop_hash_table_u8_loads_store_to_loaded_address"), "F082").contains("critical"));
  EXPECT_TRUE(severities(pattern("f081_ld_shared_u32_shfl_sync_st_global"), "F081").empty())
      << words(pattern("f081_ld_shared_u32_shfl_sync_st_global"));
  for (const std::string_view name : kMasked) {
    for (const std::string_view rule : kSiteRules) {
      EXPECT_TRUE(severities(pattern(name), rule).empty()) << name << words(pattern(name));
    }
  }
}

TEST(Probes, ptxas_accepts_every_probe) {
  if (std::system("ptxas --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no ptxas on PATH";
  for (const std::string_view name : kernels::probe_names()) {
    for (const ProbeOffset offset : {ProbeOffset::zero, ProbeOffset::parameter}) {
      const std::string path = testing::TempDir() + "probe.ptx";
      std::ofstream(path) << kernels::probe_ptx(name, offset);
      EXPECT_EQ(std::system(("ptxas -arch=sm_75 -o /dev/null " + path).c_str()), 0) << name;
    }
  }
}

}  // namespace
}  // namespace ptxkit
