#include "tools/ptx-debug/lsp/completion.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/next_words.hpp"

namespace ptxkit::lsp {
namespace {

// CompletionItemKind of LSP.
constexpr int kFunctionItem = 3, kVariableItem = 6, kKeywordItem = 14, kReferenceItem = 18, kConstantItem = 21,
              kOperatorItem = 24;

constexpr std::string_view kModuleDirectives[] = {
    "version",         "target",         "address_size", "visible", "extern",       "weak",    "common",
    "entry",           "func",           "global",       "const",   "shared",       "alias",   "file",
    "section",         "pragma",         "maxntid",      "reqntid", "minnctapersm", "maxnreg", "reqnctapercluster",
    "explicitcluster", "maxclusterrank", "noreturn"};
constexpr std::string_view kBodyDirectives[] = {"reg", "local",         "shared",      "param",         "pragma",
                                                "loc", "branchtargets", "calltargets", "callprototype", "align"};
constexpr std::string_view kTypes[] = {
#define PTX_TYPE(id, text, bits) text,
#include "analyzer/ptx/types.def"
#undef PTX_TYPE
};
constexpr std::string_view kSpecials[] = {
#define PTX_SPECIAL(id, text, type, vector, version, sm) text,
#include "analyzer/ptx/special_registers.def"
#undef PTX_SPECIAL
};

bool is_in_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("_$%.:").find(c) != std::string_view::npos;
}

class Completion {
 public:
  Completion(Document& document, size_t cursor)
      : document_(document), module_(document.module()), text_(document.text()), cursor_(cursor) {}

  Json list() {
    if (is_in_comment()) return std::move(items_);
    size_t begin = cursor_;
    while (begin > 0 && is_in_word(text_[begin - 1])) --begin;
    const std::string_view word = text_.substr(begin, cursor_ - begin);
    const ptx::FunctionId function = function_at(module_, static_cast<ptx::Offset>(cursor_));
    const size_t dot = word.rfind('.');
    if (dot == 0) {
      begin_ = begin + 1;
      if (!begins_statement(begin)) add_types();
      const bool is_in_body = function != ptx::kNone && is_behind_brace(function);
      for (const std::string_view each :
           is_in_body ? std::span<const std::string_view>(kBodyDirectives) : kModuleDirectives)
        add(each, "directive", kKeywordItem);
      if (!is_in_body) add("param", "directive", kKeywordItem);
    } else if (dot != word.npos) {
      begin_ = begin + dot + 1;
      add_next_words(word.substr(0, dot));
    } else {
      begin_ = begin;
      if (function != ptx::kNone && begins_statement(begin) && !word.starts_with('%')) {
        add_opcodes();
      } else {
        add_names();
      }
    }
    return std::move(items_);
  }

 private:
  bool is_in_comment() const {
    const size_t line = text_.rfind('\n', cursor_ == 0 ? 0 : cursor_ - 1);
    const size_t start = line == text_.npos ? 0 : line;
    return text_.substr(start, cursor_ - start).find("//") != text_.npos;
  }

  // Whether nothing but a guard stands between the end of the statement before and `begin`.
  bool begins_statement(size_t begin) const {
    size_t at = begin;
    while (at > 0 && std::string_view(" \t\r").find(text_[at - 1]) != std::string_view::npos) --at;
    if (at == 0 || std::string_view(";{}:\n").find(text_[at - 1]) != std::string_view::npos) {
      if (at == 0 || text_[at - 1] != '\n') return true;
      // A line may go on a statement; comments do not count.
      size_t line_end = at - 1;
      while (line_end > 0) {
        const size_t line_begin =
            text_.rfind('\n', line_end - 1) == text_.npos ? 0 : text_.rfind('\n', line_end - 1) + 1;
        std::string_view line = text_.substr(line_begin, line_end - line_begin);
        line = line.substr(0, line.find("//"));
        const size_t last = line.find_last_not_of(" \t\r");
        if (last != line.npos) return std::string_view(";{}:").find(line[last]) != std::string_view::npos;
        if (line_begin == 0) break;
        line_end = line_begin - 1;
      }
      return true;
    }
    // "@p" or "@!p" before it
    size_t word = at;
    while (word > 0 && is_in_word(text_[word - 1])) --word;
    if (word > 0 && text_[word - 1] == '!') --word;
    return word < at && word > 0 && text_[word - 1] == '@';
  }

  bool is_behind_brace(ptx::FunctionId function) const {
    const size_t brace = text_.find('{', module_.functions[function].at);
    return brace != text_.npos && brace < cursor_;
  }

  void add(std::string_view label, std::string_view detail, int kind) {
    items_.push_back({{"label", label},
                      {"kind", kind},
                      {"detail", detail},
                      {"textEdit", {{"range", range_json(document_.places(), begin_, cursor_)}, {"newText", label}}}});
  }

  unsigned version() const { return module_.version_major * 10 + module_.version_minor; }
  ptx::TargetName target() const { return {module_.target_sm, module_.target_suffix}; }

  void add_types() {
    for (const std::string_view each : kTypes)
      if (!each.empty()) add(each, "type", kKeywordItem);
  }

  void add_opcodes() {
    for (uint16_t i = 0; i < static_cast<uint16_t>(ptx::Op::unknown); ++i) {
      const auto op = static_cast<ptx::Op>(i);
      const auto is_known = [&](const ptx::Form& form) {
        return (version() == 0 || (form.version <= version() && version() <= form.last_version)) &&
               (module_.target_sm == 0 || ptx::runs_on(form.targets, target()));
      };
      if (std::ranges::any_of(ptx::forms_of(op), is_known)) add(text(op), ptx::family_name(op), kFunctionItem);
    }
  }

  void add_next_words(std::string_view head) {
    if (head.starts_with('%')) {
      const ptx::SpecialRegister special = ptx::find_special(head);
      if (special == ptx::SpecialRegister::none || !ptx::is_vector(special)) return;
      for (const std::string_view each : {"x", "y", "z"}) add(each, "component", kConstantItem);
      return;
    }
    const ptx::Opcode opcode = ptx::read_opcode(head);
    for (const std::string& word : ptx::next_words(opcode.op, opcode.words, version(), target())) {
      const ptx::Word meaning = ptx::find_word(word);
      const std::string_view what = meaning.kind == ptx::Word::Kind::type     ? "type"
                                    : meaning.kind == ptx::Word::Kind::space  ? "state space"
                                    : meaning.kind == ptx::Word::Kind::vector ? "vector"
                                                                              : "modifier";
      add(word, what, kOperatorItem);
    }
  }

  void add_names() {
    for (const Declared& each : declared_at(module_, static_cast<ptx::Offset>(cursor_))) {
      const bool is_label = each.symbol.kind == Symbol::Kind::label || each.symbol.kind == Symbol::Kind::table;
      add(each.name, each.what,
          is_label                                     ? kReferenceItem
          : each.symbol.kind == Symbol::Kind::function ? kFunctionItem
                                                       : kVariableItem);
    }
    for (const std::string_view each : kSpecials) {
      const ptx::SpecialRegister special = ptx::find_special(each);
      if (version() != 0 && version() < ptx::first_version(special)) continue;
      if (module_.target_sm != 0 && module_.target_sm < ptx::first_target(special)) continue;
      add(each, fmt::format("special register, .{}", text(ptx::type(special))), kConstantItem);
    }
  }

  Document& document_;
  const ptx::Module& module_;
  std::string_view text_;
  size_t cursor_, begin_ = 0;
  Json items_ = Json::array();
};

}  // namespace

Json completion(Document& document, Place place) {
  return Completion(document, document.places().offset(place)).list();
}

}  // namespace ptxkit::lsp
