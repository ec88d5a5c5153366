#include "fkr_tests/property/rewriting.hpp"

#include <algorithm>
#include <functional>
#include <ranges>
#include <set>
#include <utility>

#include "analyzer/ptx/diagnostic.hpp"
#include "analyzer/ptx/facts.hpp"
#include "analyzer/ptx/lexer.hpp"
#include "analyzer/ptx/word_order.hpp"

namespace ptxkit::rewriting {

using ptx::Function;
using ptx::Instruction;
using ptx::Item;
using ptx::Module;
using ptx::OpcodeWord;
using ptx::WordClass;

namespace {

struct Edit {
  size_t begin = 0, end = 0;
  std::string text;
};

std::string edited(std::string_view text, std::vector<Edit> edits) {
  std::ranges::sort(edits, {}, &Edit::begin);
  std::string result;
  size_t at = 0;
  for (const Edit& edit : edits) {
    result.append(text.substr(at, edit.begin - at)).append(edit.text);
    at = edit.end;
  }
  return result.append(text.substr(at));
}

std::string join(std::string_view opcode, const std::vector<OpcodeWord>& words) {
  std::string spelling(opcode);
  for (const OpcodeWord& word : words) spelling.append(".").append(word.text);
  return spelling;
}

// Words of one class back into the order that they had.
void restore_classes(std::vector<OpcodeWord>& words, const std::vector<OpcodeWord>& before) {
  for (const WordClass each : {WordClass::type, WordClass::space, WordClass::layout, WordClass::logic}) {
    auto next = before.begin();
    const auto is_of_class = [&](const OpcodeWord& word) { return ptx::class_of(word.word) == each; };
    for (OpcodeWord& word : words) {
      if (!is_of_class(word)) continue;
      next = std::find_if(next, before.end(), is_of_class);
      word = *next++;
    }
  }
}

// Of a function's body.
struct Piece {
  size_t begin = 0, end = 0;
  std::string branch;  // to what control goes on to
};

// Two eviction priorities are a first and a second one.
bool has_two_priorities(const std::vector<OpcodeWord>& words) {
  return std::ranges::count_if(words, [](const OpcodeWord& w) { return w.text.starts_with("L2::evict"); }) > 1;
}

}  // namespace

std::vector<std::string> other_orders(std::string_view spelling, size_t most, std::mt19937& random) {
  const ptx::Opcode opcode = ptx::read_opcode(spelling);
  const std::string_view op = spelling.substr(0, spelling.find_first_of(". \t"));
  const auto names = ptx::name_words(opcode.op, opcode.words);
  std::vector<OpcodeWord> name, rest;
  for (const OpcodeWord& word : opcode.words) {
    const bool is_name = std::ranges::find(names, word.text) != names.end();
    (is_name ? name : rest).push_back(word);
  }
  std::set<std::string> found;
  if (has_two_priorities(rest)) return {};
  std::vector<size_t> order(rest.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  constexpr size_t kMaxPermutedAll = 5;
  const size_t attempts = rest.size() <= kMaxPermutedAll ? 120 : 4 * most;
  for (size_t attempt = 0; attempt < attempts; ++attempt) {
    if (rest.size() > kMaxPermutedAll)
      std::ranges::shuffle(order, random);
    else if (!std::ranges::next_permutation(order).found)
      break;
    std::vector<OpcodeWord> words = name;
    for (const size_t i : order) words.push_back(rest[i]);
    restore_classes(words, opcode.words);
    found.insert(join(op, words));
  }
  found.erase(join(op, opcode.words));
  std::vector<std::string> all(found.begin(), found.end());
  std::ranges::shuffle(all, random);
  if (all.size() > most) all.resize(most);
  return all;
}

std::string with_other_orders(const Module& module, std::mt19937& random) {
  std::vector<Edit> edits;
  for (const Function& function : module.functions)
    for (const Instruction& instruction : function.instructions) {
      const auto others = other_orders(instruction.spelling, 1, random);
      if (!others.empty())
        edits.push_back({instruction.opcode_at, instruction.opcode_at + instruction.spelling.size(), others.front()});
    }
  return edited(module.text, std::move(edits));
}

std::string with_other_names(const Module& module) {
  std::vector<Edit> edits;
  for (const Function& function : module.functions) {
    if (!function.has_body) continue;
    std::set<std::string, std::less<>> names;
    std::set<size_t> opcodes;
    for (const auto& declaration : function.register_declarations) names.emplace(declaration.base);
    for (const auto& reg : function.registers) names.insert(reg.name());
    for (const auto& label : function.labels) names.emplace(label.name);
    for (const Instruction& instruction : function.instructions) opcodes.insert(instruction.opcode_at);
    size_t body = function.end;
    for (const Item& item : function.items) body = std::min<size_t>(body, item.at);
    std::vector<ptx::Diagnostic> diagnostics;
    ptx::Lexer lexer(module.text, diagnostics);
    lexer.seek(static_cast<ptx::Offset>(body));
    for (ptx::Token token = lexer.next(); token.kind != ptx::TokenKind::end && token.at < function.end;
         token = lexer.next()) {
      if (token.kind != ptx::TokenKind::identifier || opcodes.contains(token.at)) continue;
      const std::string_view name = lexer.text(token);
      if (names.contains(name))
        edits.push_back(
            {token.at, token.end, name[0] == '%' ? "%zz" + std::string(name.substr(1)) : "zz" + std::string(name)});
    }
  }
  return edited(module.text, std::move(edits));
}

std::optional<std::string> with_other_places(const Module& module, std::mt19937& random) {
  std::vector<Edit> edits;
  for (const Function& function : module.functions) {
    const auto is_plain = [](const Item& item) {
      return item.kind == Item::Kind::instruction || item.kind == Item::Kind::label;
    };
    // Registers and variables stand first, and no scope is opened.
    size_t first = 1;
    while (first < function.items.size() && !is_plain(function.items[first])) ++first;
    if (function.items.size() < first + 2 || function.items.back().kind != Item::Kind::close_brace) continue;
    if (!std::all_of(function.items.begin() + static_cast<long>(first), function.items.end() - 1, is_plain)) continue;
    // Each begins with a label, but the first, and ends where control does, or with a branch to the next one's label.
    std::vector<Piece> pieces{{function.items[first].at, 0, ""}};
    bool goes_on = true;
    for (size_t i = first; i + 1 < function.items.size(); ++i) {
      const Item& item = function.items[i];
      if (item.kind == Item::Kind::label) {
        const bool is_behind_label = i > first && function.items[i - 1].kind == Item::Kind::label;
        if (i == first || is_behind_label) continue;
        pieces.back().end = item.at;
        if (goes_on) pieces.back().branch = "bra " + std::string(function.labels[item.id].name) + ";\n";
        pieces.push_back({item.at, 0, ""});
        continue;
      }
      const Instruction& last = function.instructions[item.id + item.count - 1];
      goes_on = last.guard || !(ptx::ends_thread(last) || ptx::is_branch(last));
    }
    pieces.back().end = function.items.back().at;
    if (pieces.size() < 3 || goes_on || function.items[function.items.size() - 2].kind == Item::Kind::label) continue;
    std::vector<size_t> order(pieces.size());
    for (size_t each = 0; each < order.size(); ++each) order[each] = each;
    std::shuffle(order.begin() + 1, order.end(), random);
    if (std::ranges::is_sorted(order)) std::swap(order[1], order.back());
    std::string text;
    for (const size_t each : order) {
      const Piece& piece = pieces[each];
      text.append(module.text.substr(piece.begin, piece.end - piece.begin)).append(piece.branch);
    }
    edits.push_back({pieces.front().begin, pieces.back().end, std::move(text)});
  }
  if (edits.empty()) return std::nullopt;
  return edited(module.text, std::move(edits));
}

}  // namespace ptxkit::rewriting
