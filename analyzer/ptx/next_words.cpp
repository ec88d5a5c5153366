#include "analyzer/ptx/next_words.hpp"

#include <algorithm>
#include <deque>

#include "analyzer/ptx/word_order.hpp"

namespace ptxkit::ptx {
namespace {

bool is_available(unsigned version, unsigned last_version, std::string_view targets, unsigned now, TargetName target) {
  if (now != 0 && (now < version || now > last_version)) return false;
  return target.sm == 0 || runs_on(targets, target);
}

std::string with_number(std::string_view word) {
  std::string text(word);
  if (const size_t star = text.find('*'); star != std::string::npos) text[star] = '8';
  return text;
}

// Whether the form takes the words, followed by one for each slot that it requires and they do not fill.
bool can_complete(const Form& form, std::vector<OpcodeWord> words) {
  std::deque<std::string> texts;  // of the words that are added
  for (ModifierMatch match = match_modifiers(form, words);;) {
    if (match.unclaimed_count != 0) return false;
    if (match.missing_count == 0) return !misplaced_word(form.op, words);
    const ModifierMatch before = match;
    for (const std::string_view alternative : slot_alternatives(before.first_missing)) {
      const std::string& word = texts.emplace_back(with_number(alternative));
      words.push_back({word, find_word(word)});
      match = match_modifiers(form, words);
      if (match.unclaimed_count == 0 && match.missing_count < before.missing_count) break;
      words.pop_back();
      match = before;
    }
    if (match.missing_count == before.missing_count) return false;
  }
}

}  // namespace

std::vector<std::string_view> slots_of(const Form& form) {
  std::vector<std::string_view> slots;
  for (std::string_view rest = form.modifiers; !rest.empty();) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view slot = rest.substr(0, rest.find(' '));
    rest.remove_prefix(slot.size());
    if (!slot.empty()) slots.push_back(slot);
  }
  return slots;
}

std::vector<std::string> next_words(Op op, std::span<const OpcodeWord> words, unsigned version, TargetName target) {
  std::vector<std::string> result;
  std::vector<OpcodeWord> longer(words.begin(), words.end());
  longer.emplace_back();
  for (const Form& form : forms_of(op)) {
    if (!is_available(form.version, form.last_version, form.targets, version, target)) continue;
    for (const std::string_view slot : slots_of(form)) {
      for (const std::string_view alternative : slot_alternatives(slot)) {
        const std::string word = with_number(alternative);
        if (std::ranges::find(result, word) != result.end()) continue;
        longer.back() = {word, find_word(word)};
        const auto is_refused = [&](const WordLevel& level) {
          return applies(level, op, longer) && !is_available(level.version, ~0u, level.targets, version, target);
        };
        if (can_complete(form, longer) && std::ranges::none_of(word_levels(), is_refused)) result.push_back(word);
      }
    }
  }
  return result;
}

}  // namespace ptxkit::ptx
