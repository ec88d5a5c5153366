// See spelled_form.hpp.
#include "fkr_tests/device/spelled_form.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "analyzer/ptx/next_words.hpp"

namespace ptxkit::testing {

namespace {

using Words = std::vector<std::string>;
using Options = std::vector<Words>;  // the alternatives of a slot, or of a group of slots
using Choice = std::vector<size_t>;  // an alternative for each slot
constexpr ptx::TargetName kTarget{90, 'a'};

std::vector<Options> options_of(const ptx::Form& form) {
  std::vector<Options> all;
  bool in_group = false;
  for (const std::string_view slot : ptx::slots_of(form)) {
    Options words;
    for (const std::string_view each : ptx::slot_alternatives(slot)) {
      std::string word(each);
      if (const size_t star = word.find('*'); star != std::string::npos) word.replace(star, 1, "16");
      words.push_back({std::move(word)});
    }
    if (in_group) {  // each alternative of the group so far with each of these
      Options joined{{}};
      for (const Words& before : all.back())
        for (const Words& one : words)
          if (!before.empty()) {
            joined.push_back(before);
            joined.back().push_back(one.front());
          }
      all.back() = std::move(joined);
    } else {
      if (slot.front() == '[') words.insert(words.begin(), Words());
      all.push_back(std::move(words));
    }
    in_group = (in_group || slot.front() == '[') && slot.back() != ']';
  }
  return all;
}

std::vector<Choice> every_choice(const std::vector<Options>& options) {
  std::vector<Choice> choices{{}};
  for (const Options& slot : options) {
    std::vector<Choice> longer;
    for (const Choice& each : choices)
      for (size_t i = 0; i < slot.size(); ++i) {
        longer.push_back(each);
        longer.back().push_back(i);
      }
    choices = std::move(longer);
  }
  return choices;
}

// Choices in which every alternative of a slot occurs together with every alternative of every other slot.
std::vector<Choice> every_pair(const std::vector<Options>& options) {
  using Pair = std::tuple<size_t, size_t, size_t, size_t>;  // slot, option, later slot, option
  std::set<Pair> open;
  for (size_t i = 0; i < options.size(); ++i)
    for (size_t k = i + 1; k < options.size(); ++k)
      for (size_t a = 0; a < options[i].size(); ++a)
        for (size_t b = 0; b < options[k].size(); ++b) open.insert({i, a, k, b});
  constexpr size_t kUnset = ~size_t{0};
  std::vector<Choice> choices;
  while (!open.empty()) {
    Choice choice(options.size(), kUnset);
    const auto [first, a, second, b] = *open.begin();
    choice[first] = a;
    choice[second] = b;
    const auto pair = [&](size_t i, size_t k) {
      return i < k ? Pair(i, choice[i], k, choice[k]) : Pair(k, choice[k], i, choice[i]);
    };
    for (size_t i = 0; i < options.size(); ++i) {
      if (choice[i] != kUnset) continue;
      size_t best = 0, most = 0;
      for (size_t turn = 0; turn < options[i].size(); ++turn) {
        choice[i] = (turn + choices.size()) % options[i].size();  // if no alternative is better, vary it
        size_t gained = 1;
        for (size_t k = 0; k < options.size(); ++k)
          gained += k != i && choice[k] != kUnset && open.contains(pair(i, k));
        if (gained > most) {
          most = gained;
          best = choice[i];
        }
      }
      choice[i] = best;
    }
    for (size_t i = 0; i < options.size(); ++i)
      for (size_t k = i + 1; k < options.size(); ++k) open.erase(pair(i, k));
    choices.push_back(std::move(choice));
  }
  return choices;
}

SpelledForm spell(const ptx::Form& form, Words words) {
  SpelledForm out;
  out.form = &form;
  out.words = std::move(words);
  out.spelling = text(form.op);
  std::vector<ptx::OpcodeWord> opcode_words;
  ptx::FormContext context;
  for (const std::string& word : out.words) {
    out.spelling += "." + word;
    const ptx::Word known = ptx::find_word(word);
    opcode_words.push_back({word, known});
    if (known.kind == ptx::Word::Kind::type) out.types.push_back(static_cast<ptx::Type>(known.id));
    if (known.kind == ptx::Word::Kind::vector) context.vector = known.id;
    if (known.kind == ptx::Word::Kind::space) {
      (out.has_space ? context.second_space : context.space) = static_cast<ptx::Space>(known.id);
      out.has_space = true;
    }
  }
  out.space = context.space;
  out.vector = context.vector;
  context.words = opcode_words;
  context.types = out.types;
  out.first = ptx::compile_operands(form, context, out.specs);
  return out;
}

bool runs(const SpelledForm& each) {
  std::vector<ptx::OpcodeWord> words;
  for (const std::string& word : each.words) words.push_back({word, ptx::find_word(word)});
  return std::ranges::all_of(ptx::word_levels(), [&](const ptx::WordLevel& level) {
    return !ptx::applies(level, each.form->op, words) || ptx::runs_on(level.targets, kTarget);
  });
}

}  // namespace

bool SpelledForm::has(std::string_view word) const { return std::ranges::find(words, word) != words.end(); }

bool runs_on_90(const ptx::Form& form) { return ptx::runs_on(form.targets, kTarget) && form.last_version >= 86; }

std::vector<SpelledForm> spell_form(const ptx::Form& form, size_t most) {
  std::vector<SpelledForm> all;
  if (!runs_on_90(form)) return all;
  const std::vector<Options> options = options_of(form);
  size_t count = 1;
  for (const Options& slot : options) count *= slot.size();
  for (const Choice& choice : count <= most || options.size() < 2 ? every_choice(options) : every_pair(options)) {
    Words words;
    for (size_t i = 0; i < options.size(); ++i)
      words.insert(words.end(), options[i][choice[i]].begin(), options[i][choice[i]].end());
    SpelledForm each = spell(form, std::move(words));
    each.number = static_cast<unsigned>(all.size());
    if (runs(each)) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace ptxkit::testing
