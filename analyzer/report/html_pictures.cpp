// The pictures of the page: scores, control flow, shared memory, and the banks that a warp's lanes access.
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/analyze/analysis.hpp"
#include "analyzer/inspect/flow_picture.hpp"
#include "analyzer/inspect/statistics.hpp"
#include "analyzer/report/html_parts.hpp"
#include "analyzer/report/words.hpp"
#include "analyzer/rules/engine/context.hpp"
#include "analyzer/rules/engine/rule.hpp"
#include "analyzer/rules/engine/warp_access.hpp"
#include "analyzer/rules/score.hpp"
#include "support/plural.hpp"

namespace ptxkit::report {
namespace {

using ptx::Space;

constexpr uint32_t kMaxBlocks = 400;     // no larger control-flow graph is drawn
constexpr size_t kMaxBankPictures = 12;  // of a kernel: the worst accesses
constexpr unsigned kBanks = 32, kLanes = 32;
constexpr unsigned kCell = 14;        // pixels
constexpr double kMemoryWidth = 900;  // pixels

// Shared variables of the kernel, of functions that it calls, and of the module where the kernel names them.
std::vector<ptx::VariableId> shared_variables(const HtmlKernel& at, const ptx::Function& function) {
  std::vector<ptx::VariableId> ids;
  for (const ptx::VariableId id : function.variables) ids.push_back(id);
  for (const ptx::Operand& operand : function.operand_pool) {
    const bool is_variable = operand.kind == ptx::OperandKind::symbol ||
                             (operand.kind == ptx::OperandKind::address && operand.base == ptx::AddressBase::variable);
    if (is_variable && operand.id < at.module().variables.size()) ids.push_back(operand.id);
  }
  std::erase_if(ids, [&](ptx::VariableId id) { return at.module().variables[id].space != Space::shared; });
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

struct Use {
  size_t load_count = 0, store_count = 0, atomic_count = 0;
};

std::string use_text(const Use& use) {
  return fmt::format("{}, {}, {}", plural(use.load_count, "load"), plural(use.store_count, "store"),
                     plural(use.atomic_count, "atomic"));
}

// Draws the variables side by side, with widths in proportion to their sizes. An unsized variable takes a tenth of the
// picture.
std::string memory_svg(const ptx::Module& module, const std::vector<ptx::VariableId>& ids) {
  double total = 0;
  for (const ptx::VariableId id : ids) total += static_cast<double>(module.variables[id].size_bytes);
  const double unsized = std::max(total / 10, 1.0);
  for (const ptx::VariableId id : ids) total += module.variables[id].is_unsized ? unsized : 0;
  std::string out = fmt::format(
      "<svg class=\"memory\" viewBox=\"0 0 {0} 46\" width=\"{0}\" height=\"46\" role=\"img\"><title>shared memory of a "
      "CTA</title>\n",
      kMemoryWidth);
  double x = 0;
  for (const ptx::VariableId id : ids) {
    const ptx::Variable& variable = module.variables[id];
    const double bytes = variable.is_unsized ? unsized : static_cast<double>(variable.size_bytes);
    const double width = total > 0 ? kMemoryWidth * bytes / total : 0;
    const std::string size = variable.is_unsized ? "dynamic" : plural(variable.size_bytes, "byte");
    const size_t room = static_cast<size_t>(width / 7);
    out += fmt::format(
        "<g><title>{0}, {1}, aligned to {2}</title><rect class=\"{3}\" x=\"{4:.1f}\" y=\"1\" width=\"{5:.1f}\" "
        "height=\"44\"/>",
        for_html(variable.name), size, variable.align, variable.is_unsized ? "unsized" : "object", x, width);
    if (room >= 4) {
      out += fmt::format("<text x=\"{:.1f}\" y=\"19\">{}</text><text class=\"soft\" x=\"{:.1f}\" y=\"36\">{}</text>",
                         x + 5, for_html(variable.name.substr(0, room)), x + 5,
                         for_html(std::string_view(size).substr(0, room)));
    }
    out += "</g>\n";
    x += width;
  }
  return out + "</svg>\n";
}

// Draws a row per active lane and a column per bank, with a mark where the lane's access falls. Lanes that access
// different words of one bank are serialised.
std::string bank_svg(const rules::WarpFootprint& footprint, uint32_t bytes) {
  // Accesses of 8 and 16 bytes are served per half and quarter warp; lanes of different parts do not conflict.
  const unsigned lanes_at_once = bytes >= 16 ? 8 : bytes >= 8 ? 16 : 32;
  std::map<std::pair<unsigned, unsigned>, std::set<int64_t>> words_of_bank;  // by turn and bank
  const auto for_each_word = [&](const auto& visit) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!(footprint.active >> lane & 1)) continue;
      for (uint32_t byte = 0; byte < bytes; byte += 4) {
        const int64_t word = (footprint.offset_bytes[lane] + byte) >> 2;
        visit(lane, static_cast<unsigned>(word & (kBanks - 1)), word);
      }
    }
  };
  for_each_word(
      [&](unsigned lane, unsigned bank, int64_t word) { words_of_bank[{lane / lanes_at_once, bank}].insert(word); });
  const unsigned left = 26, top = 16;
  std::string out = fmt::format(
      "<svg class=\"banks\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\"><title>lanes by "
      "bank</title>\n<rect class=\"paper\" x=\"{2}\" y=\"{3}\" width=\"{4}\" height=\"{5}\"/>\n",
      left + kBanks * kCell + 1, top + kLanes * kCell / 2 + 1, left, top, kBanks * kCell, kLanes * kCell / 2);
  for (unsigned i = 0; i < kBanks; i += 4) {
    out += fmt::format("<text x=\"{}\" y=\"12\">{}</text><text x=\"0\" y=\"{}\">{}</text>\n", left + i * kCell, i,
                       top + i * kCell / 2 + 8, i);
  }
  for_each_word([&](unsigned lane, unsigned bank, int64_t word) {
    const size_t words = words_of_bank[{lane / lanes_at_once, bank}].size();
    out += fmt::format(
        "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>lane {}, bank {}, word {:+}: {} in "
        "this "
        "bank</title></rect>\n",
        words > 2   ? "clash"
        : words > 1 ? "pair"
                    : "free",
        left + bank * kCell, top + lane * kCell / 2, kCell - 1, kCell / 2 - 1, lane, bank, word, plural(words, "word"));
  });
  return out + "</svg>\n";
}

std::string bank_pictures(const HtmlKernel& at, const ptx::Function& function,
                          const std::vector<rules::SharedAccess>& accesses) {
  struct Picture {
    const rules::SharedAccess* shared;
    unsigned degree;
  };
  std::vector<Picture> pictures;
  for (const rules::SharedAccess& shared : accesses) {
    if (!shared.footprint || shared.access.extent_bytes == 0) continue;
    pictures.push_back({&shared, rules::conflict_degree(*shared.footprint, shared.access.extent_bytes)});
  }
  std::ranges::stable_sort(pictures, std::greater(), &Picture::degree);
  std::string out =
      fmt::format("<p>{} of {} are a known function of the lane", pictures.size(), plural(accesses.size(), "request"));
  if (pictures.size() > kMaxBankPictures) {
    out += fmt::format("; the {} with the worst conflicts are drawn", kMaxBankPictures);
    pictures.resize(kMaxBankPictures);
  }
  out +=
      ". First warp of a block, first iteration of the loops around; rows are lanes, columns are banks, counted from "
      "where the lanes start.</p>\n<div class=\"pictures\">\n";
  for (const Picture& picture : pictures) {
    const ptx::Instruction& instruction = function.instructions[picture.shared->access.instruction];
    const uint32_t line = at.module().position(instruction.at).line;
    std::string place = fmt::format("line {}", line);
    const bool is_own = at.function().at <= instruction.at && instruction.at < at.function().end;
    if (is_own && is_shown_whole(at)) place = fmt::format("<a href=\"#{}\">{}</a>", ptx_line_id(at, line), place);
    out += fmt::format("<figure data-degree=\"{}\">{}<figcaption>{} <code>{}</code>: {}</figcaption></figure>\n",
                       picture.degree, bank_svg(*picture.shared->footprint, picture.shared->access.extent_bytes), place,
                       for_html(instruction.spelling),
                       picture.degree == 1 ? "no conflict" : fmt::format("{}-way conflict", picture.degree));
  }
  return out + "</div>\n";
}

}  // namespace

std::string score_bars_html(const KernelAnalysis& kernel) {
  struct Category {
    std::string_view name;
    rules::Score score;
    size_t refuted_count = 0, undecided_count = 0;
    bool has_critical = false;
  };
  std::vector<Category> categories;
  for (const RuleVerdict& entry : kernel.verdicts) {
    if (categories.empty() || categories.back().name != entry.rule->category) {
      categories.push_back({entry.rule->category, {}});
    }
    Category& category = categories.back();
    category.score.add(*entry.rule, entry.result);
    category.has_critical =
        category.has_critical ||
        std::ranges::count(entry.result.findings, rules::Severity::critical, &rules::Finding::severity);
    category.refuted_count += entry.result.verdict == rules::Verdict::refuted;
    category.undecided_count += entry.result.verdict == rules::Verdict::undecided;
  }
  const double percent = kernel.score.percent();
  std::string out = fmt::format(
      "<p class=\"score\"><strong class=\"{0}\">{1:.1f}</strong> <span class=\"bar\"><span class=\"{0}\" "
      "style=\"width:{1:.1f}%\"></span></span> {2} of {3} points{4}</p>\n<table class=\"categories\">\n",
      score_class_of(percent, kernel.count(rules::Severity::critical) > 0), percent, kernel.score.earned,
      kernel.score.earned + kernel.score.lost, cap_text(kernel.score));
  for (const Category& category : categories) {
    const uint32_t total = category.score.earned + category.score.lost;
    std::string words = total ? fmt::format("{} of {}", category.score.earned, total) : "no points at stake";
    if (category.refuted_count) words += fmt::format(", {} refuted", category.refuted_count);
    if (category.undecided_count) words += fmt::format(", {} undecided", category.undecided_count);
    out += fmt::format(
        "<tr><th>{}<td><span class=\"bar{}\"><span class=\"{}\" style=\"width:{:.1f}%\"></span></span><td>{}\n",
        category.name, total ? "" : " none", score_class_of(category.score.percent(), category.has_critical),
        total ? category.score.percent() : 0.0, words);
  }
  return out + "</table>\n";
}

std::string flow_html(const HtmlKernel& at) {
  const uint32_t block_count = inspect::statistics_of(at.module(), at.function()).block_count;
  if (block_count == 0) return "";
  std::string out = fmt::format("<details class=\"flow-picture\"><summary>Control flow, {}</summary>\n",
                                plural(block_count, "block"));
  if (block_count > kMaxBlocks) {
    return out +
           fmt::format("<p>More than {} blocks are not drawn; `ptx-debug cfg` draws them.</p></details>\n", kMaxBlocks);
  }
  return out + "<div class=\"wide\">" + inspect::flow_svg(at.module(), at.function(), at.id + "-") +
         "</div></details>\n";
}

std::string shared_memory_html(const HtmlKernel& at, const AnalysisOptions& options) {
  rules::Context context(at.module(), at.kernel.function, at.file.parsed.diagnostics, options.rules);
  if (!context.has_body()) return "";
  const std::vector<ptx::VariableId> ids = shared_variables(at, context.function());
  if (ids.empty()) return "";
  const std::vector<rules::SharedAccess> accesses = rules::shared_accesses(context);
  std::map<ptx::VariableId, Use> uses;
  uint64_t bytes = 0;
  for (const ptx::VariableId id : ids) bytes += at.module().variables[id].size_bytes;
  for (const rules::SharedAccess& shared : accesses) {
    Use& use = uses[shared.object];
    ++(shared.access.kind == ptx::AccessKind::load    ? use.load_count
       : shared.access.kind == ptx::AccessKind::store ? use.store_count
                                                      : use.atomic_count);
  }
  std::string out = fmt::format(
      "<details class=\"shared\"><summary>Shared memory, {}</summary>\n<div class=\"wide\">{}</div>\n<ul>\n",
      plural(bytes, "byte"), memory_svg(at.module(), ids));
  for (const ptx::VariableId id : ids) {
    out += fmt::format("<li><code>{}</code>: {}\n", for_html(at.module().variables[id].name), use_text(uses[id]));
  }
  if (const auto other = uses.find(ptx::kNone); other != uses.end()) {
    out += fmt::format("<li>through addresses of which the object is not known: {}\n", use_text(other->second));
  }
  out += "</ul>\n";
  if (!accesses.empty()) out += bank_pictures(at, context.function(), accesses);
  return out + "</details>\n";
}

}  // namespace ptxkit::report
