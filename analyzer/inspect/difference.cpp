// Aligns each pair of functions twice. The first alignment compares the shapes of lines, without names, and yields the
// renaming. The second compares the lines after renaming `before`. A line therefore counts as unchanged only under one
// renaming that holds for the whole function.
#include "analyzer/inspect/difference.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analyzer/inspect/edit_script.hpp"
#include "analyzer/inspect/statistics.hpp"
#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/print.hpp"

namespace ptxkit::inspect {
namespace {

constexpr size_t kContextLines = 3;

using ptx::Function;
using ptx::Item;
using ptx::Module;

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_name_part(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }
bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A symbol without its generated parts: runs of eight or more hex digits, and numbers in names with a '$'.
std::string without_generated_parts(std::string_view name) {
  const bool is_numbered = name.find('$') != name.npos || name.starts_with("__unnamed");
  std::string kept;
  for (size_t at = 0; at < name.size();) {
    size_t end = at;
    while (end < name.size() && is_hex(name[end])) ++end;
    const bool is_hash = end - at >= 8 && std::any_of(name.begin() + at, name.begin() + end, is_digit);
    if (!is_hash && is_numbered && is_digit(name[at])) {
      end = at;
      while (end < name.size() && is_digit(name[end])) ++end;
    } else if (!is_hash) {
      kept += name[at++];
      continue;
    }
    kept += '#';
    at = end;
  }
  return kept;
}

// A line, and the names in it that are arbitrary.
struct Line {
  std::string text;
  std::string shape;  // `text` with each name replaced by its kind
  struct Name {
    size_t at, size;
    bool is_symbol;  // of the module, not local to a function
  };
  std::vector<Name> names;
  uint32_t source_line = 0;  // line in the original file; 0 for a line without an instruction

  std::string_view name(size_t index) const {
    return std::string_view(text).substr(names[index].at, names[index].size);
  }
};

// A unit of comparison: a function, or the rest of the module.
struct Part {
  std::string title;  // "kernel k"; "module"
  std::string key;    // name without its generated parts
  std::string name;
  std::vector<Line> lines;
  const Function* function = nullptr;  // in the original module
};

// One module split into parts. Works on the canonical text, parsed again, so that each line is one instruction or
// directive.
class Outline {
 public:
  explicit Outline(const Module& original) : original_(original), canonical_(ptx::parse(ptx::print(original), {})) {
    for (const Function& function : original.functions) {
      if (function.has_body) defined_[function.name] = &function;
    }
    const Module& module = canonical_.module;
    for (const Function& function : module.functions) name_symbol(function.name, function.linkage, "function");
    for (const ptx::Variable& variable : module.variables) {
      if (variable.function == ptx::kNone) name_symbol(variable.name, variable.linkage, "variable");
    }
    Part rest{"module", "", "", {}, nullptr};
    for (const Item& item : module.items) {
      const bool is_definition = item.kind == Item::Kind::function && module.functions[item.id].has_body &&
                                 module.text.substr(item.at, item.end - item.at).ends_with('}');
      if (is_definition) {
        parts_.push_back(function_part(item.id, item));
      } else if (item.kind != Item::Kind::file && item.kind != Item::Kind::section_text) {
        for (const std::string_view text : lines_of(item)) rest.lines.push_back(line(text, {}));
      }
    }
    parts_.push_back(std::move(rest));
  }

  std::vector<Part>& parts() { return parts_; }
  const Module& original() const { return original_; }

 private:
  using Kinds = std::unordered_map<std::string, std::string>;

  void name_symbol(std::string_view name, ptx::Linkage linkage, const char* kind) {
    const std::string stripped = without_generated_parts(name);
    if (linkage == ptx::Linkage::internal) {
      symbols_.emplace(name, kind);
    } else if (stripped != name) {
      symbols_.emplace(name, stripped);
    }
  }

  std::vector<std::string_view> lines_of(const Item& item) const {
    std::vector<std::string_view> lines;
    std::string_view text = canonical_.module.text.substr(item.at, item.end - item.at);
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      if (end != 0) lines.push_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
  }

  Kinds local_names(const Function& function) const {
    Kinds kinds;
    for (const ptx::Register& reg : function.registers) {
      kinds.emplace(reg.name(),
                    fmt::format("%{}{}", reg.vector > 1 ? fmt::format("v{}.", reg.vector) : "", ptx::text(reg.type)));
    }
    for (const ptx::Label& label : function.labels) kinds.emplace(label.name, "label");
    for (const ptx::Table& table : function.tables) kinds.emplace(table.name, "table");
    for (const auto* list : {&function.results, &function.parameters, &function.variables}) {
      for (const ptx::VariableId id : *list) kinds.emplace(canonical_.module.variables[id].name, "local");
    }
    return kinds;
  }

  Part function_part(ptx::FunctionId id, const Item& item) const {
    const Function& function = canonical_.module.functions[id];
    Part part;
    part.name = function.name;
    part.key = without_generated_parts(function.name);
    part.title = fmt::format("{} {}", function.is_entry ? "kernel" : "function", function.name);
    if (const auto found = defined_.find(function.name); found != defined_.end()) part.function = found->second;
    // Maps an instruction's line in the canonical text to its line in the original.
    std::unordered_map<uint32_t, uint32_t> source_lines;
    for (size_t i = 0; i < function.instructions.size() && i < part.function->instructions.size(); ++i) {
      source_lines.emplace(canonical_.module.position(function.instructions[i].at).line,
                           original_.position(part.function->instructions[i].at).line);
    }
    const Kinds kinds = local_names(function);
    std::vector<Line> lines;
    std::set<std::string, std::less<>> mentioned;
    for (const std::string_view text : lines_of(item)) {
      const std::string_view content = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
      if (content.starts_with(".loc") || content.starts_with(".reg ")) continue;
      Line next = line(text, kinds);
      const auto number =
          canonical_.module.position(static_cast<ptx::Offset>(text.data() - canonical_.module.text.data())).line;
      if (const auto found = source_lines.find(number); found != source_lines.end()) next.source_line = found->second;
      if (!is_label(next)) {
        for (size_t i = 0; i < next.names.size(); ++i) mentioned.emplace(next.name(i));
      }
      lines.push_back(std::move(next));
    }
    // Drop unreferenced labels: they mark source positions or the ends of functions.
    for (Line& each : lines) {
      if (!is_label(each) || mentioned.contains(each.name(0))) part.lines.push_back(std::move(each));
    }
    return part;
  }

  static bool is_label(const Line& line) { return line.shape.ends_with("label:"); }

  Line line(std::string_view text, const Kinds& local) const {
    Line result;
    result.text = text;
    bool is_quoted = false;
    for (size_t at = 0; at < text.size();) {
      if (text[at] == '"') is_quoted = !is_quoted;
      size_t end = at + 1;
      if (!is_quoted && is_name_start(text[at])) {
        while (end < text.size() && is_name_part(text[end])) ++end;
        const std::string name(text.substr(at, end - at));
        const bool is_word = at > 0 && text[at - 1] == '.';  // .u32, .x
        const auto here = local.find(name), outside = symbols_.find(name);
        if (!is_word && (here != local.end() || outside != symbols_.end())) {
          const bool is_symbol = here == local.end();
          result.names.push_back({at, end - at, is_symbol});
          result.shape += is_symbol ? outside->second : here->second;
          at = end;
          continue;
        }
      }
      result.shape.append(text, at, end - at);
      at = end;
    }
    return result;
  }

  const Module& original_;
  ptx::ParseResult canonical_;
  std::unordered_map<std::string_view, const Function*> defined_;  // of `original_`, by name
  Kinds symbols_;
  std::vector<Part> parts_;
};

std::vector<std::string> shapes(const std::vector<Line>& lines) {
  std::vector<std::string> all;
  for (const Line& line : lines) all.push_back(line.shape);
  return all;
}

// Names of `before` and their counterparts in `after`. The most frequent pairs win, and each name is used once.
using Renaming = std::map<std::string, std::string, std::less<>>;

Renaming local_renaming(const std::vector<Line>& before, const std::vector<Line>& after,
                        const std::vector<Match>& matches) {
  std::map<std::pair<std::string_view, std::string_view>, size_t> votes;
  for (const Match& match : matches) {
    const Line& old_line = before[match.before];
    const Line& new_line = after[match.after];
    for (size_t i = 0; i < old_line.names.size(); ++i) {
      if (!old_line.names[i].is_symbol) ++votes[{old_line.name(i), new_line.name(i)}];
    }
  }
  std::vector<std::pair<std::pair<std::string_view, std::string_view>, size_t>> ranked(votes.begin(), votes.end());
  std::ranges::stable_sort(ranked, std::greater<>(), [](const auto& entry) { return entry.second; });
  Renaming names;
  std::set<std::string_view> taken;
  for (const auto& [pair, count] : ranked) {
    if (!names.contains(pair.first) && taken.insert(pair.second).second) names.emplace(pair.first, pair.second);
  }
  return names;
}

// Symbols have one meaning in all functions, so they are paired once, by their declarations.
Renaming symbol_renaming(const std::vector<Line>& before, const std::vector<Line>& after) {
  Renaming names;
  std::set<std::string_view> taken;
  for (const Match& match : common_subsequence(shapes(before), shapes(after))) {
    const Line& old_line = before[match.before];
    const Line& new_line = after[match.after];
    for (size_t i = 0; i < old_line.names.size(); ++i) {
      if (!names.contains(old_line.name(i)) && taken.insert(new_line.name(i)).second) {
        names.emplace(old_line.name(i), new_line.name(i));
      }
    }
  }
  return names;
}

std::string renamed(const Line& line, const Renaming& locals, const Renaming& symbols) {
  std::string text;
  size_t at = 0;
  for (size_t i = 0; i < line.names.size(); ++i) {
    text.append(line.text, at, line.names[i].at - at);
    const Renaming& names = line.names[i].is_symbol ? symbols : locals;
    const auto found = names.find(line.name(i));
    // An unmatched name becomes a text that no line of the other module contains.
    text += found == names.end() ? fmt::format("\n{}", line.name(i)) : found->second;
    at = line.names[i].at + line.names[i].size;
  }
  return text + line.text.substr(at);
}

struct DiffLine {
  char change;         // ' ', '-', '+'
  const Line* before;  // null: the line is only in `after`
  const Line* after;   // null: the line is only in `before`

  const Line& line() const { return after ? *after : *before; }
};

std::vector<DiffLine> compare(const std::vector<Line>& before, const std::vector<Line>& after,
                              const Renaming& symbols) {
  const Renaming locals = local_renaming(before, after, common_subsequence(shapes(before), shapes(after)));
  std::vector<std::string> old_texts, new_texts;
  for (const Line& line : before) old_texts.push_back(renamed(line, locals, symbols));
  for (const Line& line : after) new_texts.push_back(line.text);
  std::vector<DiffLine> lines;
  size_t i = 0, j = 0;
  const auto until = [&](size_t row, size_t column) {
    while (i < row) lines.push_back({'-', &before[i++], nullptr});
    while (j < column) lines.push_back({'+', nullptr, &after[j++]});
  };
  for (const Match& match : common_subsequence(old_texts, new_texts)) {
    until(match.before, match.after);
    lines.push_back({' ', &before[i++], &after[j++]});
  }
  until(before.size(), after.size());
  return lines;
}

// The line of the first instruction at or after `from`, in the file of one side; 0 where there is none.
uint32_t first_source_line(const std::vector<DiffLine>& lines, size_t from, const Line* DiffLine::* side) {
  for (size_t i = from; i < lines.size(); ++i) {
    if (lines[i].*side && (lines[i].*side)->source_line) return (lines[i].*side)->source_line;
  }
  return 0;
}

std::string render(const std::vector<DiffLine>& lines) {
  std::vector<bool> shown(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].change == ' ') continue;
    const size_t end = std::min(lines.size(), i + kContextLines + 1);
    for (size_t at = i - std::min(i, kContextLines); at < end; ++at) shown[at] = true;
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!shown[i]) continue;
    if (i == 0 || !shown[i - 1]) {
      const uint32_t old_line = first_source_line(lines, i, &DiffLine::before);
      const uint32_t new_line = first_source_line(lines, i, &DiffLine::after);
      text += old_line || new_line ? fmt::format("@@ -{} +{} @@\n", old_line, new_line) : "@@\n";
    }
    text += fmt::format("{} {}\n", lines[i].change, lines[i].line().text);
  }
  return text;
}

void add_row(std::string& text, std::string_view name, uint64_t before, uint64_t after) {
  if (before == after) return;
  text += fmt::format("  {:<28} {:>6} -> {:<6} ({:+d})\n", name, before, after,
                      static_cast<int64_t>(after) - static_cast<int64_t>(before));
}

uint64_t registers_used(const FunctionStatistics& statistics) {
  uint64_t count = 0;
  for (const RegisterCount& each : statistics.registers) count += each.used_count;
  return count;
}

uint64_t threads_of(const Function& function) {
  const auto& dimensions = function.attributes.req_ntid;
  return uint64_t{dimensions[0]} * dimensions[1] * dimensions[2];
}

std::string resources(const Module& old_module, const Function& old_function, const Module& new_module,
                      const Function& new_function) {
  FunctionStatistics before = statistics_of(old_module, old_function), after = statistics_of(new_module, new_function);
  std::string text;
  add_row(text, "instructions", before.instruction_count, after.instruction_count);
  add_row(text, "virtual registers", registers_used(before), registers_used(after));
  add_row(text, "shared bytes", before.shared_bytes, after.shared_bytes);
  add_row(text, "local bytes", before.local_bytes, after.local_bytes);
  add_row(text, "parameter bytes", before.parameter_bytes, after.parameter_bytes);
  add_row(text, "threads of a CTA", threads_of(old_function), threads_of(new_function));
  std::set<std::string> kinds;
  for (const auto& [kind, count] : before.mix) kinds.insert(kind);
  for (const auto& [kind, count] : after.mix) kinds.insert(kind);
  for (const std::string& kind : kinds) add_row(text, kind, before.mix[kind], after.mix[kind]);
  return text;
}

}  // namespace

Difference difference(const Module& before, const Module& after) {
  Outline old_outline(before), new_outline(after);
  std::vector<const Part*> candidates;
  for (const Part& part : old_outline.parts()) candidates.push_back(&part);
  const auto take = [&](auto&& fits) -> const Part* {
    const auto found = std::ranges::find_if(candidates, fits);
    if (found == candidates.end()) return nullptr;
    const Part* part = *found;
    candidates.erase(found);
    return part;
  };
  // Pair equal names first, and by key only what is left.
  std::vector<const Part*> partners(new_outline.parts().size());
  for (size_t i = 0; i < partners.size(); ++i) {
    partners[i] = take([&](const Part* part) { return part->name == new_outline.parts()[i].name; });
  }
  for (size_t i = 0; i < partners.size(); ++i) {
    if (!partners[i]) partners[i] = take([&](const Part* part) { return part->key == new_outline.parts()[i].key; });
  }
  // Pair symbols by the declarations and by the pairs of functions.
  Renaming symbols = symbol_renaming(partners.back()->lines, new_outline.parts().back().lines);
  for (size_t i = 0; i < partners.size(); ++i) {
    if (partners[i]) symbols.emplace(partners[i]->name, new_outline.parts()[i].name);
  }
  std::string text;
  for (const Part* part : candidates) text += fmt::format("{}: only in the first\n", part->title);
  for (size_t i = 0; i < partners.size(); ++i) {
    const Part& part = new_outline.parts()[i];
    if (!partners[i]) {
      text += fmt::format("{}: only in the second\n", part.title);
      continue;
    }
    const std::vector<DiffLine> lines = compare(partners[i]->lines, part.lines, symbols);
    if (std::ranges::all_of(lines, [](const DiffLine& line) { return line.change == ' '; })) continue;
    text += fmt::format("{}\n", part.title);
    if (part.function) text += resources(before, *partners[i]->function, after, *part.function);
    text += render(lines);
  }
  return {text.empty(), std::move(text)};
}

}  // namespace ptxkit::inspect
