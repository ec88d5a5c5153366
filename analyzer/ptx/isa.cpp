// The table itself and the readers of its two languages.
#include "analyzer/ptx/isa.hpp"

#include <algorithm>
#include <array>

#include "analyzer/ptx/word_order.hpp"
#include "support/check.hpp"

namespace ptxkit::ptx {
namespace {

constexpr uint8_t destinations(std::string_view items) {
  constexpr std::string_view kDestinations = "dDqQw_";
  uint8_t count = 0;
  while (!items.empty()) {
    std::string_view item = next_item(items);
    if (const size_t name = item.find('='); name < item.find_first_of("{[")) item.remove_prefix(name + 1);
    if (item.starts_with('{')) item.remove_prefix(1);
    if (item.empty() || kDestinations.find(item.front()) == std::string_view::npos) break;
    ++count;
  }
  return count;
}

constexpr Form kForms[] = {
#define FORM(op, modifiers, operands, version, targets) \
  {Op::op, modifiers, operands, version, targets, 255, destinations(operands)},
#define FORM_UNTIL(op, modifiers, operands, version, last_version, targets) \
  {Op::op, modifiers, operands, version, targets, last_version, destinations(operands)},
#include "analyzer/ptx/isa_arithmetic.def"
#include "analyzer/ptx/isa_control.def"
#include "analyzer/ptx/isa_matrix.def"
#include "analyzer/ptx/isa_media.def"
#include "analyzer/ptx/isa_memory.def"
#undef FORM_UNTIL
#undef FORM
};

constexpr WordLevel kWordLevels[] = {
#define WORD(words, version, targets) {Op::unknown, false, words, version, targets},
#define WORD_OF(op, words, version, targets) {Op::op, false, words, version, targets},
#define WORD_BUT(op, words, version, targets) {Op::op, true, words, version, targets},
#include "analyzer/ptx/isa_words.def"
#undef WORD_BUT
#undef WORD_OF
#undef WORD
};

constexpr Unemulated kUnemulated[] = {
#define NOT_EMULATED(op, words, what) {Op::op, words, 0, what},
#define NOT_EMULATED_WITH(op, words, letter, what) {Op::op, words, letter, what},
#include "analyzer/ptx/isa_emulated.def"
#undef NOT_EMULATED_WITH
#undef NOT_EMULATED
};

constexpr std::string_view kPurposes[] = {
#define PURPOSE(name) #name,
#include "analyzer/ptx/purposes.def"
#undef PURPOSE
};

struct Range {
  uint16_t first = 0, count = 0;
};

constexpr size_t kOpCount = static_cast<size_t>(Op::unknown);

// Rows of one opcode stand together; a second run of them would be lost.
constexpr bool rows_are_grouped() {
  std::array<bool, kOpCount> seen{};
  for (size_t i = 0; i < std::size(kForms); ++i) {
    const auto op = static_cast<size_t>(kForms[i].op);
    if (i > 0 && kForms[i - 1].op == kForms[i].op) continue;
    if (seen[op]) return false;
    seen[op] = true;
  }
  return true;
}
static_assert(rows_are_grouped());

constexpr auto make_index() {
  std::array<Range, kOpCount> index{};
  for (size_t i = 0; i < std::size(kForms); ++i) {
    Range& range = index[static_cast<size_t>(kForms[i].op)];
    if (range.count++ == 0) range.first = static_cast<uint16_t>(i);
  }
  return index;
}
constexpr auto kIndex = make_index();

struct Set {
  std::string_view name, alternatives;
};
constexpr Set kSets[] = {
    {"rnd", "rn|rz|rm|rp"},
    {"rndint", "rni|rzi|rmi|rpi"},
    {"fcmp", "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"},
    {"bool", "and|or|xor"},
    {"cvtint", "u8|u16|u32|u64|s8|s16|s32|s64"},
    {"ldspace", "const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster"},
    {"stspace", "global|local|param|param::func|shared|shared::cta|shared::cluster"},
    {"atomspace", "global|shared|shared::cta|shared::cluster"},
    {"ldcop", "ca|cg|cs|lu|cv"},
    {"l1", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    // A cache operator or an eviction priority of L1, never both.
    {"ldcache", "ca|cg|cs|lu|cv|L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    {"nccache", "ca|cg|cs|L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    {"stcache", "wb|cg|cs|wt|L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    {"l2", "L2::evict_normal|L2::evict_first|L2::evict_last"},
    {"l2size", "L2::64B|L2::128B|L2::256B"},
    {"ldtype", "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"},
    {"ldtype32", "b8|b16|b32|u8|u16|u32|s8|s16|s32|f32"},
    {"scope", "cta|cluster|gpu|sys"},
    {"sem", "relaxed|acquire|release|acq_rel"},
    {"dim", "1d|2d|3d|4d|5d"},
    {"texgeom", "1d|2d|3d|a1d|a2d|cube|acube|2dms|a2dms"},
    {"xn", "x1|x2|x4|x8|x16|x32|x64|x128"},
};

Purpose find_purpose(std::string_view name) {
  const auto* const found = std::ranges::find(kPurposes, name);
  PTXKIT_CHECK(found != std::end(kPurposes), "the ISA table has an unknown name of an operand");
  return static_cast<Purpose>(found - std::begin(kPurposes));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether `word` is `pattern`, in which a '*' stands for digits.
bool same_word(std::string_view pattern, std::string_view word) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == word;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (word.size() <= head.size() + tail.size() || word.substr(0, star) != head) return false;
  if (word.substr(word.size() - tail.size()) != tail) return false;
  const std::string_view middle = word.substr(star, word.size() - head.size() - tail.size());
  return std::all_of(middle.begin(), middle.end(), is_digit);
}

struct Slot {
  std::string_view text;          // as the form has it
  std::string_view alternatives;  // "rn|rz"
  bool optional = false;
  bool opens_group = false, closes_group = false;  // of the first and last slot of [.acquire .cta]
};

// The next slot of `rest`, which loses it; false at the end.
bool next_slot(std::string_view& rest, Slot& slot) {
  const size_t start = rest.find_first_not_of(' ');
  if (start == std::string_view::npos) return false;
  rest.remove_prefix(start);
  slot.text = rest.substr(0, rest.find(' '));
  rest.remove_prefix(slot.text.size());
  std::string_view text = slot.text;
  slot.opens_group = text[0] == '[';
  slot.closes_group = text.back() == ']';
  slot.optional = slot.opens_group && slot.closes_group;
  if (slot.opens_group) text.remove_prefix(1);
  if (slot.closes_group) text.remove_suffix(1);
  text.remove_prefix(1);  // the dot
  if (text[0] == '$') {
    const auto* set =
        std::find_if(std::begin(kSets), std::end(kSets), [&](const Set& s) { return s.name == text.substr(1); });
    PTXKIT_CHECK(set != std::end(kSets), "the ISA table names a set that does not exist");
    slot.alternatives = set->alternatives;
  } else {
    slot.alternatives = text[0] == '{' ? text.substr(1, text.size() - 2) : text;
  }
  return true;
}

bool is_alternative(std::string_view alternatives, std::string_view word) {
  while (!alternatives.empty()) {
    const std::string_view one = alternatives.substr(0, alternatives.find('|'));
    if (same_word(one, word)) return true;
    alternatives.remove_prefix(std::min(alternatives.size(), one.size() + 1));
  }
  return false;
}

// Whether every item of `wanted`, "sp kind::f8f6f4|kind::mxf4", is among `words`.
bool has_all(std::span<const OpcodeWord> words, std::string_view wanted) {
  while (!wanted.empty()) {
    const std::string_view one = wanted.substr(0, wanted.find(' '));
    wanted.remove_prefix(std::min(wanted.size(), one.size() + 1));
    if (std::none_of(words.begin(), words.end(), [&](const OpcodeWord& w) { return is_alternative(one, w.text); }))
      return false;
  }
  return true;
}

Type wide(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      return type;
  }
}

unsigned leading_number(std::string_view text) {
  unsigned value = 0;
  for (size_t i = 0; i < text.size() && is_digit(text[i]); ++i)
    value = value * 10 + static_cast<unsigned>(text[i] - '0');
  return value;
}

// Reader of the operand language. Its text is ours, so a mistake in it is a failed check, found by the table's test.
class OperandCompiler {
 public:
  OperandCompiler(const Form& form, const FormContext& context, std::vector<OperandSpec>& pool)
      : text_(form.operands), context_(context), pool_(pool) {}

  size_t compile() {
    std::vector<OperandSpec> items;
    skip_blanks();
    while (at_ < text_.size()) {
      OperandSpec item;
      if (parse_item(item)) items.push_back(item);
      skip_blanks();
      if (at_ < text_.size()) take(',');
      skip_blanks();
    }
    const size_t first = pool_.size();
    pool_.insert(pool_.end(), items.begin(), items.end());
    return first;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_blanks() {
    while (peek() == ' ') ++at_;
  }
  void take(char c) {
    PTXKIT_CHECK(peek() == c, "the ISA table has a malformed operand list");
    ++at_;
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  uint16_t add_child(const OperandSpec& child) {
    pool_.push_back(child);
    return static_cast<uint16_t>(pool_.size() - 1);
  }

  bool has_word(std::string_view word) const {
    return std::any_of(context_.words.begin(), context_.words.end(),
                       [&](const OpcodeWord& w) { return w.text == word; });
  }

  bool converts_bf16() const {
    return std::any_of(context_.types.begin(), context_.types.end(),
                       [](Type type) { return type == Type::bf16 || type == Type::bf16x2; });
  }

  // False where the item belongs to a modifier that the spelling lacks.
  bool parse_item(OperandSpec& item) {
    const bool present = parse_single(item);
    if (!accept('|')) return present;
    OperandSpec second;
    parse_single(second);
    second.purpose = Purpose::second_result;
    OperandSpec pair;
    pair.role = Role::pair;
    pair.purpose = item.purpose;
    pair.pair_optional = second.optional;
    second.optional = false;
    pair.first_child = add_child(item);
    add_child(second);
    pair.child_count = 2;
    item = pair;
    return present;
  }

  bool parse_single(OperandSpec& item) {
    const std::string_view name = parse_name();
    if (accept('[')) return parse_address_with_more(item);
    const bool braces = accept('{');
    OperandSpec element;
    bool present = true;
    OperandSpec first;  // {r/a*4}: the first of them
    bool has_first = false;
    unsigned count = 1;
    bool counted = false;
    const bool is_depth = peek() == 'z';
    parse_role(element);
    if (!name.empty()) element.purpose = find_purpose(name);
    element.type = context_.types.empty() ? Type::none : context_.types.back();
    if (is_depth) {
      present = element.type == Type::f32;
      element.type = Type::b32;  // integers will do
    }
    for (;;) {
      if (accept(':')) {
        parse_type(element);
      } else if (accept('~')) {
        element.relaxed = !converts_bf16();
      } else if (accept('?')) {
        element.optional = true;
      } else if (accept('-')) {
        element.may_negate = true;
      } else if (accept('*')) {
        counted = true;
        parse_count(count);
      } else if (accept('+')) {
        element.padded = true;
      } else if (accept('/')) {
        first = element;
        has_first = true;
        element = OperandSpec();
        parse_role(element);
        element.purpose = first.purpose;
        element.type = context_.types.empty() ? Type::none : context_.types.back();
      } else if (accept('@')) {
        const size_t start = at_;
        while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ']') ++at_;
        present = has_word(text_.substr(start, at_ - start));
        element.optional = false;
      } else if (accept('(')) {
        parse_bounds(element);
      } else {
        break;
      }
    }
    if (!braces && (!counted || context_.vector == 1)) {
      item = element;
      if (counted) item.may_sink = false;  // `_` stands for an element of a list, not for the whole of it
      return present;
    }
    if (braces) {
      take('}');
      // A type may follow the braces in none of the rows; '?' and '@' may.
      if (accept('?')) item.optional = true;
      if (accept('!')) item.is_late = true;
    }
    item.role = Role::vector;
    item.purpose = element.purpose;
    item.type = element.type;
    item.count = static_cast<uint16_t>(count);
    item.padded = element.padded;
    item.first_child = add_child(element);
    item.child_count = 1;
    if (has_first) {
      add_child(first);
      item.child_count = 2;
    }
    return present;
  }

  bool parse_address_with_more(OperandSpec& item) {
    OperandSpec base;
    std::vector<OperandSpec> more;
    parse_item(base);
    item = base;
    if (item.role != Role::opaque) item.role = Role::address_with_more;
    skip_blanks();
    while (accept(',')) {
      skip_blanks();
      OperandSpec child;
      if (parse_item(child)) more.push_back(child);
      skip_blanks();
    }
    take(']');
    item.first_child = static_cast<uint16_t>(pool_.size());
    item.child_count = static_cast<uint16_t>(more.size());
    pool_.insert(pool_.end(), more.begin(), more.end());
    return true;
  }

  // "barrier=", or nothing.
  std::string_view parse_name() {
    size_t end = at_;
    while (end < text_.size() && ((text_[end] >= 'a' && text_[end] <= 'z') || text_[end] == '_')) ++end;
    if (end == text_.size() || text_[end] != '=') return {};
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end + 1;
    return name;
  }

  void parse_role(OperandSpec& item) {
    item.letter = peek();
    ++at_;
    switch (item.letter) {
      case 'D':
        item.may_sink = true;
        [[fallthrough]];
      case 'd':
        item.role = Role::destination;
        item.purpose = Purpose::result;
        break;
      case 'w':
        item.role = Role::destination;
        item.purpose = Purpose::result;
        item.selector = parse_selector(Selector::part, Selector::half_mask, Selector::byte_mask);
        if (item.selector == Selector::part && (has_word("add") || has_word("min") || has_word("max")))
          item.selector = Selector::none;
        break;
      case 'r':
        item.role = Role::source;
        break;
      case 'A':
        item.may_sink = true;
        [[fallthrough]];
      case 'a':
        item.role = Role::constant_or_source;
        break;
      case 'x':
        item.selector = parse_selector(Selector::part, Selector::halves, Selector::bytes);
        item.role = item.selector == Selector::part ? Role::constant_or_source : Role::source;
        break;
      case 'S':
        item.role = Role::special;
        break;
      case 'e':
        item.role = Role::special_or_source;
        break;
      case 's':
        item.role = Role::mov_source;
        break;
      case 'i':
        item.role = Role::integer;
        item.purpose = Purpose::immediate;
        break;
      case 'B':
      case 'b':
        item.role = Role::predicate_or_constant;
        item.purpose = Purpose::predicate;
        break;
      case 'p':
        item.role = Role::predicate;
        item.purpose = Purpose::predicate;
        break;
      case 'Q':
        item.may_sink = true;
        [[fallthrough]];
      case 'q':
        item.role = Role::predicate_destination;
        item.purpose = Purpose::result;
        break;
      case 'm':
        item.role = Role::address;
        item.purpose = Purpose::address;
        item.space = context_.space;
        if (accept('1')) {
          item.space = context_.second_space;
        } else {
          accept('0');
        }
        break;
      case 'n':
        item.role = Role::address;
        item.purpose = Purpose::address;
        item.space = context_.space;
        item.relaxed = true;
        break;
      case 'o':
        item.role = Role::opaque;
        item.purpose = Purpose::image;
        break;
      case 't':
        item.role = Role::tensor_memory;
        item.purpose = Purpose::address;
        break;
      case 'v':
        item.role = Role::variable_or_register;
        break;
      case 'g':
        item.role = Role::generic_address;
        break;
      case 'L':
        item.role = Role::label;
        item.purpose = Purpose::target;
        break;
      case 'T':
        item.role = Role::table;
        item.purpose = Purpose::target;
        break;
      case 'C':
        item.role = Role::call;
        break;
      case 'z':
        item.role = Role::constant_or_source;
        item.purpose = Purpose::depth;
        item.is_late = true;
        break;
      case '_':
        item.role = Role::sink;
        item.purpose = Purpose::result;
        break;
      default:
        PTXKIT_CHECK(false, "the ISA table has an unknown operand role");
    }
  }

  Selector parse_selector(Selector one, Selector two, Selector four) {
    return accept('2') ? two : accept('4') ? four : one;
  }

  void parse_type(OperandSpec& item) {
    if (is_digit(peek())) {
      const auto index = static_cast<size_t>(peek() - '0');
      ++at_;
      item.type = index < context_.types.size() ? context_.types[index] : Type::none;
    } else if (peek() == 'w') {
      ++at_;
      item.type = wide(item.type);
    } else {
      const size_t start = at_;
      while (at_ < text_.size() && ((text_[at_] >= 'a' && text_[at_] <= 'z') || is_digit(text_[at_]))) ++at_;
      item.type = find_type(text_.substr(start, at_ - start));
      item.exact = true;
      PTXKIT_CHECK(item.type != Type::none, "the ISA table has an unknown operand type");
    }
  }

  void parse_count(unsigned& count) {
    if (accept('v')) {
      count = context_.vector;
      return;
    }
    if (accept('d')) {
      for (const OpcodeWord& w : context_.words) {
        if (w.text.size() == 2 && w.text[1] == 'd') count = leading_number(w.text);
      }
      if (text_.substr(at_, 2) == "-2") {
        at_ += 2;
        count -= 2;
      }
      return;
    }
    if (accept('n')) {
      take('/');
      for (const OpcodeWord& w : context_.words) {
        if (w.word.kind == Word::Kind::modifier && static_cast<Mod>(w.word.id) == Mod::shape) count = w.word.shape.n;
      }
      const auto by = leading_number(text_.substr(at_, 1));
      PTXKIT_CHECK(by != 0, "a row of the table divides by a number");
      count /= by;
      ++at_;
      return;
    }
    unsigned number = leading_number(text_.substr(at_));
    while (is_digit(peek())) ++at_;
    if (accept('x')) {
      for (const OpcodeWord& w : context_.words) {
        if (w.text.size() > 1 && w.text[0] == 'x' && is_digit(w.text[1])) {
          count = (number == 0 ? 1 : number) * leading_number(w.text.substr(1));
        }
      }
      return;
    }
    PTXKIT_CHECK(number != 0, "the ISA table has a list without a length");
    count = number;
  }

  void parse_bounds(OperandSpec& item) {
    const size_t close = text_.find(')', at_);
    const std::string_view bounds = text_.substr(at_, close - at_);
    at_ = close + 1;
    if (bounds == "t") {
      item.multiple_of = 32;
      return;
    }
    item.bounded = true;
    const size_t dots = bounds.find("..");
    if (dots != std::string_view::npos) {
      item.low = leading_number(bounds);
      item.high = dots + 2 == bounds.size() ? INT64_MAX : leading_number(bounds.substr(dots + 2));
      const size_t step = bounds.find('/');
      if (step != std::string_view::npos)
        item.multiple_of = static_cast<uint16_t>(leading_number(bounds.substr(step + 1)));
      return;
    }
    const bool has_minus_one = bounds.starts_with("-1|");
    item.low = has_minus_one ? -1 : int64_t{leading_number(bounds)};
    item.high = item.low;
    for (size_t start = has_minus_one ? 3 : 0; start < bounds.size();) {
      const unsigned value = leading_number(bounds.substr(start));
      if (value < 64) item.allowed |= uint64_t{1} << value;
      item.high = value;
      start = bounds.find('|', start);
      start = start == std::string_view::npos ? bounds.size() : start + 1;
    }
  }

  std::string_view text_;
  const FormContext& context_;
  std::vector<OperandSpec>& pool_;
  size_t at_ = 0;
};

// Architectures of one family: sm_100f code runs on sm_103, sm_120f code on sm_121. sm_101 was renamed sm_110.
unsigned family(unsigned sm) { return sm == 101 ? 11 : sm / 10; }

}  // namespace

std::string_view text(Purpose purpose) { return kPurposes[static_cast<size_t>(purpose)]; }

std::span<const Form> all_forms() { return kForms; }

std::span<const Form> forms_of(Op op) {
  if (op == Op::unknown) return {};
  const Range range = kIndex[static_cast<size_t>(op)];
  return std::span<const Form>(kForms).subspan(range.first, range.count);
}

std::vector<std::string_view> slot_alternatives(std::string_view text) {
  Slot slot;
  std::vector<std::string_view> result;
  if (!next_slot(text, slot)) return result;
  while (!slot.alternatives.empty()) {
    result.push_back(slot.alternatives.substr(0, slot.alternatives.find('|')));
    slot.alternatives.remove_prefix(std::min(slot.alternatives.size(), result.back().size() + 1));
  }
  return result;
}

ModifierMatch match_modifiers(const Form& form, std::span<const OpcodeWord> words) {
  ModifierMatch result;
  uint64_t claimed = 0;
  const size_t count = std::min<size_t>(words.size(), 64);
  std::string_view rest = form.modifiers;
  Slot slot;
  bool in_group = false;
  unsigned group_filled = 0;
  std::string_view group_missing;
  while (next_slot(rest, slot)) {
    if (slot.opens_group && !slot.optional) {
      in_group = true;
      group_filled = 0;
      group_missing = {};
    }
    bool filled = false;
    bool passed[static_cast<size_t>(WordClass::none)] = {};
    for (size_t i = 0; i < count && !filled; ++i) {
      if ((claimed >> i & 1) != 0) continue;
      // Only the first open word of a class may be taken: their order has a meaning.
      const WordClass of = class_of(words[i].word);
      const bool is_ordered = of != WordClass::none;
      if (is_ordered && passed[static_cast<size_t>(of)]) continue;
      if (is_alternative(slot.alternatives, words[i].text)) {
        claimed |= uint64_t{1} << i;
        filled = true;
      }
      if (is_ordered) passed[static_cast<size_t>(of)] = true;
    }
    if (in_group) {
      if (filled) {
        ++group_filled;
      } else {
        group_missing = slot.text;
      }
      if (!slot.closes_group) continue;
      in_group = false;
      if (group_filled == 0 || group_missing.empty()) continue;
      if (result.missing_count++ == 0) result.first_missing = group_missing;
    } else if (!filled && !slot.optional) {
      if (result.missing_count++ == 0) result.first_missing = slot.text;
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (i < 64 && (claimed >> i & 1) != 0) continue;
    if (result.unclaimed_count++ == 0) result.first_unclaimed = words[i].text;
  }
  return result;
}

Opcode read_opcode(std::string_view spelling) {
  Opcode result;
  for (size_t at = 0; at < spelling.size();) {
    const bool first = at == 0;
    const size_t end = std::min(spelling.find('.', at), spelling.size());
    std::string_view word = spelling.substr(at, end - at);
    while (!word.empty() && (word.back() == ' ' || word.back() == '\t')) word.remove_suffix(1);
    if (first) {
      result.op = find_op(word);
    } else {
      result.words.push_back({word, find_word(word)});
    }
    at = end + 1;
  }
  return result;
}

std::span<const WordLevel> word_levels() { return kWordLevels; }

bool applies(const WordLevel& level, Op op, std::span<const OpcodeWord> words) {
  if (level.op != Op::unknown && (level.op == op) == level.any_other) return false;
  return has_all(words, level.words);
}

std::span<const Unemulated> unemulated() { return kUnemulated; }

const Unemulated* find_unemulated(Op op, std::span<const OpcodeWord> words, std::string_view roles) {
  for (const Unemulated& row : kUnemulated) {
    if (row.op != op || !has_all(words, row.words)) continue;
    if (row.letter == 0 || roles.find(row.letter) != std::string_view::npos) return &row;
  }
  return nullptr;
}

bool runs_on(std::string_view targets, TargetName target) {
  while (!targets.empty()) {
    const std::string_view one = targets.substr(0, targets.find(','));
    targets.remove_prefix(std::min(targets.size(), one.size() + 1));
    const unsigned sm = leading_number(one);
    const size_t dash = one.find('-');
    const char last = one.back();
    if (dash != std::string_view::npos) {
      if (target.sm >= sm && target.sm <= leading_number(one.substr(dash + 1))) return true;
    } else if (last == 'a') {
      if (target.sm == sm && target.suffix == 'a') return true;
    } else if (last == 'f') {
      if (target.suffix != 0 && target.sm >= sm && family(target.sm) == family(sm)) return true;
    } else if (target.sm >= sm) {
      return true;
    }
  }
  return false;
}

size_t compile_operands(const Form& form, const FormContext& context, std::vector<OperandSpec>& pool) {
  return OperandCompiler(form, context, pool).compile();
}

}  // namespace ptxkit::ptx
