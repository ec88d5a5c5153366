#include "analyzer/ptx/word_order.hpp"

#include <algorithm>

namespace ptxkit::ptx {

namespace {

struct NameWords {
  Op op;
  std::string_view words;  // separated by blanks
};
constexpr NameWords kNameWords[] = {
#define NAME_WORDS(op, words) {Op::op, words},
#include "analyzer/ptx/isa_names.def"
#undef NAME_WORDS
};

}  // namespace

WordClass class_of(const Word& word) {
  switch (word.kind) {
    case Word::Kind::type:
      return WordClass::type;
    case Word::Kind::space:
      return WordClass::space;
    case Word::Kind::modifier:
      break;
    default:
      return WordClass::none;
  }
  switch (static_cast<Mod>(word.id)) {
    case Mod::row:
    case Mod::col:
      return WordClass::layout;
    case Mod::and_:
    case Mod::xor_:
    case Mod::popc:
      return WordClass::logic;
    default:
      return WordClass::none;
  }
}

std::vector<std::string_view> name_words(Op op, std::span<const OpcodeWord> words) {
  std::vector<std::string_view> found;
  const auto* const row = std::ranges::find(kNameWords, op, &NameWords::op);
  if (row == std::end(kNameWords)) return found;
  for (std::string_view rest = row->words; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (std::ranges::find(words, one, &OpcodeWord::text) != words.end()) found.push_back(one);
  }
  return found;
}

std::optional<MisplacedWord> misplaced_word(Op op, std::span<const OpcodeWord> words) {
  const auto names = name_words(op, words);
  for (size_t i = 0; i < names.size(); ++i)
    if (words[i].text != names[i]) return MisplacedWord{names[i], words[i].text};
  return std::nullopt;
}

}  // namespace ptxkit::ptx
