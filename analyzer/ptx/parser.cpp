// The module level: header, files, sections, top-level declarations; error reporting and recovery.
// PTX ISA 9.0, chapters 4 and 11.
#include "analyzer/ptx/parser.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "analyzer/ptx/isa.hpp"
#include "analyzer/ptx/levels.hpp"
#include "analyzer/ptx/names.hpp"
#include "support/check.hpp"

namespace ptxkit::ptx {

Parser::Parser(Module& module, std::vector<Diagnostic>& diagnostics)
    : module_(module), diagnostics_(diagnostics), lexer_(module.text, diagnostics), validator_(module) {
  slot_budget_ = module.text.size() / 4 + 4096;
}

void Parser::advance() {
  previous_end_ = token_.end;
  token_ = lexer_.next();
}

bool Parser::accept(char c) {
  if (!is(c)) return false;
  advance();
  return true;
}

bool Parser::accept_word(std::string_view word) {
  if (!is_word(word)) return false;
  advance();
  return true;
}

bool Parser::expect(char c, std::string_view after) {
  if (accept(c)) return true;
  unexpected(fmt::format("'{}' after {}", c, after));
  return false;
}

std::string Parser::found() const {
  if (token_.kind == TokenKind::end) return "the end of the file";
  const std::string_view text = here();
  return fmt::format("'{}{}'", text.substr(0, 60), text.size() > 60 ? "..." : "");
}

void Parser::report(DiagnosticKind kind, Offset at, Offset end, std::string message) {
  diagnostics_.push_back({kind, at, std::max(at, end), std::move(message), function_});
}

void Parser::unexpected(std::string_view expected) {
  report_here(DiagnosticKind::unexpected_token, fmt::format("expected {}, found {}", expected, found()));
}

bool Parser::starts_line() const {
  return module_.text.substr(previous_end_, token_.at - previous_end_).find('\n') != std::string_view::npos;
}

// Skips past the next ';', or to a '}' that closes the statement's block, or to a line whose first token can only begin
// a statement.
void Parser::recover() {
  unsigned nesting = 0;
  while (token_.kind != TokenKind::end) {
    if (accept(';')) return;
    if (starts_line() && (is('@') || token_.kind == TokenKind::dot_word)) return;
    if (is('{')) {
      ++nesting;
    } else if (is('}') && nesting-- == 0) {
      return;
    }
    advance();
  }
}

// Reports features that are newer than the file's version or not available on its target.
void Parser::require_level(std::string_view feature, Offset at, Offset end) {
  const DirectiveLevel* level = level_of_directive(feature);
  PTXKIT_CHECK(level != nullptr, "a directive has no row among the levels");
  if (version() != 0 && version() < level->version) {
    report(DiagnosticKind::needs_version, at, end,
           fmt::format("'{}' needs '.version {}.{}' or later, the file has {}.{}", feature, level->version / 10,
                       level->version % 10, module_.version_major, module_.version_minor));
  } else if (module_.target_sm != 0 && !runs_on(level->targets, {module_.target_sm, module_.target_suffix})) {
    report(DiagnosticKind::needs_target, at, end,
           fmt::format("'{}' needs a target among sm_{}, the file has {}", feature, level->targets, module_.target));
  }
}

void Parser::add_item(std::vector<Item>& items, Item::Kind kind, uint32_t id, Offset at, uint32_t count) {
  items.push_back({kind, id, count, at, previous_end_});
}

void Parser::run() {
  advance();
  parse_header();
  while (token_.kind != TokenKind::end && diagnostics_.size() < kMaxErrors) {
    const Offset at = token_.at;
    parse_top_level();
    if (token_.at == at) advance();  // skip the unknown token
  }
  if (token_.kind == TokenKind::end) {
    check_definitions();
  } else {
    report_here(DiagnosticKind::limit_exceeded, fmt::format("more than {} errors, the rest is not read", kMaxErrors));
  }
}

// Whether the token may follow the declaration of a function that lacks its ';'.
bool Parser::begins_declaration() const {
  static constexpr std::string_view kWords[] = {".visible", ".extern", ".weak",  ".common", ".func",
                                                ".entry",   ".global", ".const", ".shared", ".file",
                                                ".section", ".alias",  ".local", ".reg",    ".tex"};
  return is('@') ||
         std::any_of(std::begin(kWords), std::end(kWords), [&](std::string_view word) { return is_word(word); });
}

bool Parser::is_texmode_independent() const {
  const auto& options = module_.target_options;
  return std::find(options.begin(), options.end(), "texmode_independent") != options.end();
}

// Symbols declared without '.extern' must be defined in the module.
void Parser::check_definitions() {
  for (FunctionId id = 0; id < module_.functions.size(); ++id) {
    const Function& declared = module_.functions[id];
    if (declared.has_body || declared.linkage == Linkage::external) continue;
    const bool is_alias =
        std::any_of(module_.aliases.begin(), module_.aliases.end(), [&](const Alias& a) { return a.alias == id; });
    if (is_alias) continue;
    report(
        DiagnosticKind::undeclared_name, declared.at, declared.at + 1,
        fmt::format("'{}' has no body in this module; a function of another one is declared '.extern'", declared.name));
  }
}

void Parser::parse_header() {
  if (is_word(".version")) {
    parse_version();
  } else {
    report_here(DiagnosticKind::missing_version,
                fmt::format("expected '.version' first in the file, found {}", found()));
  }
  if (is_word(".target")) {
    parse_target();
  } else {
    report_here(DiagnosticKind::missing_target, fmt::format("expected '.target' after '.version', found {}", found()));
  }
}

void Parser::parse_version() {
  const Offset at = token_.at;
  advance();
  const Token number = token_;
  const std::string_view text = here();
  if (token_.kind != TokenKind::number) {
    unexpected("a version such as 8.5");
    return;
  }
  advance();
  add_item(module_.items, Item::Kind::header, kNone, at);
  if (module_.version_major != 0) {
    report(DiagnosticKind::repeated_header, at, number.end, "'.version' is repeated");
    return;
  }
  uint32_t major = 0, minor = 0;
  const char* end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error == std::errc() && dot != end && *dot == '.') std::from_chars(dot + 1, end, minor);
  module_.version_major = major;
  module_.version_minor = minor;
  if (!is_known_version(major, minor) && !is_later_version(major, minor)) {
    report(DiagnosticKind::unknown_version, number.at, number.end,
           fmt::format("unknown PTX version '{}', this tool knows 1.0 to {}", text, kLastVersion));
  }
}

void Parser::parse_target() {
  const Offset at = token_.at;
  advance();
  if (!module_.target.empty()) report(DiagnosticKind::repeated_header, at, previous_end_, "'.target' is repeated");
  bool is_first = true;
  do {
    if (token_.kind != TokenKind::identifier) {
      unexpected("a target such as sm_90");
      break;
    }
    const Token word = token_;
    const std::string_view text = here();
    advance();
    if (text == "texmode_unified" || text == "texmode_independent" || text == "debug" || text == "map_f64_to_f32") {
      if (is_first)
        report(DiagnosticKind::missing_target, word.at, word.end,
               fmt::format("expected a target such as sm_90 before '{}'", text));
      is_first = false;
      module_.target_options.push_back(text);
      continue;
    }
    is_first = false;
    const TargetLevel* target = find_target(text);
    if (target == nullptr) {
      report(DiagnosticKind::unknown_target, word.at, word.end,
             fmt::format("unknown target '{}', expected one such as sm_90", text));
      continue;
    }
    if (!module_.target.empty()) continue;
    module_.target = text;
    module_.target_sm = target->sm;
    module_.target_suffix = target->suffix;
    if (version() != 0 && version() < target->version) {
      report(DiagnosticKind::target_needs_version, word.at, word.end,
             fmt::format("target '{}' needs '.version {}.{}' or later, found {}.{}", text, target->version / 10,
                         target->version % 10, module_.version_major, module_.version_minor));
    }
  } while (accept(','));
  add_item(module_.items, Item::Kind::header, kNone, at);
  if (is_word(".address_size")) parse_address_size();
}

void Parser::parse_address_size() {
  const Offset at = token_.at;
  advance();
  require_level(".address_size", at, previous_end_);
  const std::string_view text = here();
  if (token_.kind == TokenKind::number && (text == "32" || text == "64")) {
    module_.address_size = text == "64" ? 64 : 32;
    module_.has_address_size = true;
    advance();
  } else {
    report_here(DiagnosticKind::bad_address_size, fmt::format("expected '.address_size' 32 or 64, found {}", found()));
    if (token_.kind == TokenKind::number) advance();
  }
  add_item(module_.items, Item::Kind::header, kNone, at);
}

void Parser::parse_top_level() {
  if (token_.kind == TokenKind::punctuation && is('@')) {  // "@@DWARF ..." of PTX 1.x
    const Offset at = token_.at;
    lexer_.seek(at);
    lexer_.skip_line();
    token_.end = lexer_.at();
    advance();
    add_item(module_.items, Item::Kind::section_text, kNone, at);
    return;
  }
  if (token_.kind != TokenKind::dot_word) {
    unexpected("a directive");
    do {
      if (is('{')) {
        lexer_.skip_block();
        token_.end = lexer_.at();
      }
      advance();
    } while (token_.kind != TokenKind::end && !(token_.kind == TokenKind::dot_word && starts_line()));
    return;
  }
  if (is_word(".file")) return parse_file();
  if (is_word(".section")) return parse_section();
  if (is_word(".alias")) return parse_alias();
  if (is_word(".version")) {
    report_here(DiagnosticKind::repeated_header, "'.version' is allowed only at the start of the file");
    return parse_version();
  }
  if (is_word(".target")) {
    if (module_.target.empty())
      report_here(DiagnosticKind::missing_target, "'.target' is allowed only directly after '.version'");
    return parse_target();
  }
  if (is_word(".address_size")) {
    report_here(DiagnosticKind::bad_address_size, "'.address_size' is allowed only directly after '.target'");
    return parse_address_size();
  }
  if (is_word(".pragma")) return parse_pragma(module_.items);
  parse_qualified();
}

// .pragma "text" {, "text"};
void Parser::parse_pragma(std::vector<Item>& items) {
  const Offset at = token_.at;
  advance();
  require_level(".pragma", at, previous_end_);
  do {
    if (token_.kind != TokenKind::string) {
      unexpected("a string after '.pragma'");
      return recover();
    }
    if (function_ == kNone && &items == &module_.items && here() != "\"nounroll\"") {
      report_here(DiagnosticKind::misplaced_directive, fmt::format("pragma {} is not one of a module", here()));
    }
    const std::string_view words = here().substr(1);  // without the opening quote
    for (const std::string_view young : {"enable_smem_spilling", "frequency", "used_bytes_mask"}) {
      if (words.starts_with(young)) require_level(fmt::format("pragma {}", young), token_.at, token_.end);
    }
    advance();
  } while (accept(','));
  if (!expect(';', "'.pragma'")) recover();
  add_item(items, Item::Kind::pragma, kNone, at);
}

// Parses linking directives and attributes, and then the function or variables that they qualify.
void Parser::parse_qualified() {
  Qualifiers qualifiers;
  qualifiers.at = token_.at;
  for (;;) {
    const std::string_view word = here();
    if (token_.kind != TokenKind::dot_word) {
      unexpected("a state space, '.func' or '.entry'");
      return recover();
    }
    if (word == ".entry" || word == ".func") return parse_function(qualifiers, word == ".entry");
    if (word == ".extern" || word == ".visible" || word == ".weak" || word == ".common") {
      if (qualifiers.linkage != Linkage::internal) {
        report_here(DiagnosticKind::bad_declaration, fmt::format("'{}' after another linking directive", word));
      }
      qualifiers.linkage = word == ".extern"    ? Linkage::external
                           : word == ".visible" ? Linkage::visible
                           : word == ".weak"    ? Linkage::weak
                                                : Linkage::common;
      if (word == ".weak" || word == ".common") require_level(word, token_.at, token_.end);
      advance();
      continue;
    }
    if (word == ".attribute") {
      if (!parse_attribute(qualifiers)) return recover();
      continue;
    }
    const Word space = find_word(word.substr(1));
    if (space.kind == Word::Kind::space && word != ".sreg") {
      const auto kind = static_cast<Space>(space.id);
      // Before PTX 3.0, without an ABI, registers and local memory may belong to the module.
      const bool of_module = version() < 30 && version() != 0 && qualifiers.linkage == Linkage::internal;
      if (kind == Space::param || ((kind == Space::reg || kind == Space::local) && !of_module)) {
        report_here(DiagnosticKind::misplaced_directive, fmt::format("'{}' is not allowed outside a function", word));
        advance();
        return recover();
      }
      if (kind == Space::reg) return parse_registers(module_.items);
      advance();
      if (!parse_variables(qualifiers, kind, module_.items)) recover();
      return;
    }
    const bool of_body = word == ".maxntid" || word == ".reqntid" || word == ".minnctapersm" || word == ".maxnreg" ||
                         word == ".branchtargets" || word == ".calltargets" || word == ".callprototype" ||
                         word == ".loc" || word == ".pragma";
    report_here(of_body ? DiagnosticKind::misplaced_directive : DiagnosticKind::unknown_directive,
                of_body ? fmt::format("'{}' is not allowed at module level", word)
                        : fmt::format("unknown directive '{}'", word));
    advance();
    return recover();
  }
}

void Parser::parse_alias() {
  const Offset at = token_.at;
  advance();
  require_level(".alias", at, previous_end_);
  FunctionId ids[2] = {kNone, kNone};
  for (int i = 0; i < 2; ++i) {
    if (token_.kind != TokenKind::identifier) {
      unexpected("a function name");
      return recover();
    }
    const Symbol* symbol = symbols_.find(here());
    if (symbol == nullptr || symbol->kind != SymbolKind::function) {
      report_here(DiagnosticKind::undeclared_name, fmt::format("'{}' is not a function declared before", here()));
    } else {
      ids[i] = symbol->id;
      const Function& named = module_.functions[symbol->id];
      if (named.is_entry) {
        report_here(DiagnosticKind::bad_declaration,
                    fmt::format("'{}' is an entry, only functions have aliases", here()));
      } else if (i == 0 && named.has_body) {
        report_here(DiagnosticKind::duplicate_name,
                    fmt::format("'{}' is a function with a body, it cannot be an alias", here()));
      } else if (i == 1 && named.linkage == Linkage::weak) {
        report_here(DiagnosticKind::bad_declaration, fmt::format("'{}' is .weak and cannot have an alias", here()));
      } else if (i == 1 && ids[0] != kNone) {
        check_signature(module_.functions[ids[0]], named, token_.at);
      }
    }
    advance();
    if (i == 0 && !expect(',', "the alias")) return recover();
  }
  if (!expect(';', "'.alias'")) recover();
  module_.aliases.push_back({ids[0], ids[1]});
  add_item(module_.items, Item::Kind::alias, static_cast<uint32_t>(module_.aliases.size()) - 1, at);
}

ParseResult parse(std::string text, std::string path) {
  ParseResult result;
  Module& module = result.module;
  module.path = std::move(path);
  const bool too_long = text.size() >= kNone;
  if (too_long) text.clear();
  text.resize(text.find_last_not_of('\0') + 1);  // Warp ends its files in them
  module.owned_text = std::make_unique<const std::string>(std::move(text));
  module.text = *module.owned_text;
  module.line_starts.push_back(0);
  for (size_t at = module.text.find('\n'); at != std::string_view::npos; at = module.text.find('\n', at + 1)) {
    module.line_starts.push_back(static_cast<Offset>(at) + 1);
  }
  if (too_long) {
    result.diagnostics.push_back(
        {DiagnosticKind::limit_exceeded, 0, 0, "the file is longer than 4 GiB and is not read", kNone});
    return result;
  }
  Parser(module, result.diagnostics).run();
  auto& all = result.diagnostics;
  std::stable_sort(all.begin(), all.end(), [](const Diagnostic& a, const Diagnostic& b) { return a.at < b.at; });
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {
    return a.at == b.at && a.kind == b.kind && a.message == b.message;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return result;
}

}  // namespace ptxkit::ptx
