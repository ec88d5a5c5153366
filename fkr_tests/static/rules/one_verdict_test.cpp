// One access has one verdict on its alignment: F021, F081 and F082 rate a site as F051 rates its worst access, in every
// PTX text of this repository and in the examples of the rules' pages.
#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "analyzer/evidence/evidence.hpp"
#include "analyzer/ptx/tree.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/run_rule.hpp"
#include "analyzer/rules/table.hpp"
#include "support/file.hpp"

namespace ptxkit::rules {
namespace {

namespace fs = std::filesystem;

struct Text {
  std::string name, ptx;
};

// The PTX texts below a folder of the sources, and the blocks of PTX in its Markdown.
void add_texts(const fs::path& folder, std::vector<Text>& texts) {
  std::set<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) paths.insert(entry.path());
  for (const fs::path& path : paths) {
    if (path.extension() == ".ptx") texts.push_back({path.string(), read_file(path.string()).value_or("")});
    if (path.extension() != ".md") continue;
    const std::string page = read_file(path.string()).value_or("");
    for (size_t at = page.find("```ptx "); at != page.npos; at = page.find("```ptx ", at + 1)) {
      const size_t begin = page.find('\n', at) + 1;
      texts.push_back({path.string(), page.substr(begin, page.find("```", begin) - begin)});
    }
  }
}

using Rating = std::pair<Severity, Tier>;

std::string words(const Rating& rating) {
  return std::string(text(rating.first)) + ", " + std::string(text(rating.second));
}

const Rating kProved{Severity::info, Tier::possible};

// The worst rating at each address of the findings of F051.
std::map<ptx::Offset, Rating> ratings_of(const RuleResult& result) {
  std::map<ptx::Offset, Rating> ratings;
  for (const Finding& finding : result.findings) {
    const Rating rating{finding.severity, finding.tier};
    const auto [place, is_new] = ratings.try_emplace(finding.at, rating);
    if (!is_new) place->second = std::max(place->second, rating);
  }
  return ratings;
}

TEST(OneVerdict, ASiteIsRatedAsF051RatesItsWorstAccess) {
  std::vector<Text> texts;
  for (const char* folder : {"fkr_tests", "kernels", "docs"}) add_texts(fs::path(PTXKIT_SOURCES) / folder, texts);
  std::map<std::string_view, size_t> sites, open_sites;
  for (const Text& text : texts) {
    const ptx::ParseResult parsed = ptx::parse(text.ptx, text.name);
    Options options;
    options.evidence = &shipped_evidence();
    for (ptx::FunctionId id = 0; id < parsed.module.functions.size(); ++id) {
      if (!parsed.module.functions[id].is_entry) continue;
      Context context(parsed.module, id, parsed.diagnostics, options);
      const std::map<ptx::Offset, Rating> ratings = ratings_of(run_rule("F051", context));
      const auto rating_at = [&](ptx::Offset at) {
        const auto found = ratings.find(at);
        return found == ratings.end() ? kProved : found->second;
      };
      for (const std::string_view rule : {"F021", "F081", "F082"}) {
        const RuleResult result = run_rule(rule, context);
        for (const Finding& finding : result.findings) {
          // The last step of the path of F081 and F082 is the store.
          Rating expected = rating_at(finding.at);
          if (rule != "F021" && !finding.path.empty()) expected = std::max(expected, rating_at(finding.path.back().at));
          const Rating found{finding.severity, finding.tier};
          EXPECT_EQ(words(found), words(expected))
              << rule << " at " << text.name << ":" << parsed.module.position(finding.at).line << ": "
              << finding.message;
          ++sites[rule];
          open_sites[rule] += expected != kProved && expected.first < Severity::critical;
        }
        if (result.verdict != Verdict::refuted) {
          EXPECT_FALSE(result.loses_points) << rule << " " << text.name;
        }
      }
    }
  }
  for (const std::string_view rule : {"F021", "F081", "F082"}) {
    EXPECT_GE(sites[rule], 10u) << rule;
    EXPECT_GE(open_sites[rule], 1u) << rule << ": no text has an access that F051 leaves open";
  }
}

}  // namespace
}  // namespace ptxkit::rules
