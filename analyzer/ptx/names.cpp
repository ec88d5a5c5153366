// Vocabularies in both directions: an array from value to text, and a hash table from text to value. The tables are
// constexpr, so programs do not build them at start-up.
#include "analyzer/ptx/names.hpp"

#include <array>
#include <cstddef>

namespace ptxkit::ptx {
namespace {

struct Entry {
  std::string_view text;
  Word word;
};

// Open addressing in a table of a power of two, at least twice the number of entries. An empty text ends a probe.
template <size_t kCapacity>
struct Table {
  std::array<Entry, kCapacity> slots{};

  constexpr void insert(std::string_view text, Word word) {
    if (text.empty()) return;
    size_t slot = hash_text(text) % kCapacity;
    while (!slots[slot].text.empty()) slot = (slot + 1) % kCapacity;
    slots[slot] = {text, word};
  }

  const Word* find(std::string_view text) const {
    if (text.empty()) return nullptr;
    for (size_t slot = hash_text(text) % kCapacity; !slots[slot].text.empty(); slot = (slot + 1) % kCapacity) {
      if (slots[slot].text == text) return &slots[slot].word;
    }
    return nullptr;
  }
};

constexpr std::string_view kTypeText[] = {
#define PTX_TYPE(id, text, bits) text,
#include "analyzer/ptx/types.def"
#undef PTX_TYPE
};

constexpr uint8_t kTypeBits[] = {
#define PTX_TYPE(id, text, bits) bits,
#include "analyzer/ptx/types.def"
#undef PTX_TYPE
};

constexpr std::string_view kOpText[] = {
#define PTX_OP(id, text, family) text,
#include "analyzer/ptx/opcodes.def"
#undef PTX_OP
    "?"};

constexpr Family kFamily[] = {
#define PTX_OP(id, text, family) Family::family,
#include "analyzer/ptx/opcodes.def"
#undef PTX_OP
};

constexpr std::string_view kFamilyName[] = {
#define PTX_OP(id, text, family) #family,
#include "analyzer/ptx/opcodes.def"
#undef PTX_OP
};

constexpr std::string_view kModText[] = {
#define PTX_MOD(id, text) text,
#include "analyzer/ptx/modifiers.def"
#undef PTX_MOD
    "?"};

struct Special {
  std::string_view text;
  Type type;
  bool vector;
  uint8_t version;
  uint16_t sm;
};

constexpr Type b32 = Type::b32, pred = Type::pred, u32 = Type::u32, u64 = Type::u64;
constexpr Special kSpecial[] = {
#define PTX_SPECIAL(id, text, type, vector, version, sm) {text, type, vector, version, sm},
#include "analyzer/ptx/special_registers.def"
#undef PTX_SPECIAL
    {"?", Type::none, false, 0, 0}};

constexpr std::string_view kSpaceText[] = {"",      "reg",   "sreg",   "const",           "global",
                                           "local", "param", "shared", "shared::cluster", "tex"};

// Other spellings of a space. param::entry and param::func differ only in the parameters that may be named.
struct SpaceAlias {
  std::string_view text;
  Space space;
};
constexpr SpaceAlias kSpaceAliases[] = {
    {"shared::cta", Space::shared}, {"param::entry", Space::param}, {"param::func", Space::param}};

constexpr auto make_words() {
  Table<1024> table;
  for (size_t i = 1; i < std::size(kTypeText); ++i) {
    table.insert(kTypeText[i], {Word::Kind::type, static_cast<uint16_t>(i), {}});
  }
  for (size_t i = 1; i < std::size(kSpaceText); ++i) {
    table.insert(kSpaceText[i], {Word::Kind::space, static_cast<uint16_t>(i), {}});
  }
  for (const SpaceAlias& alias : kSpaceAliases) {
    table.insert(alias.text, {Word::Kind::space, static_cast<uint16_t>(alias.space), {}});
  }
  table.insert("v2", {Word::Kind::vector, 2, {}});
  table.insert("v4", {Word::Kind::vector, 4, {}});
  table.insert("v8", {Word::Kind::vector, 8, {}});
  for (size_t i = 0; i + 1 < std::size(kModText); ++i) {
    if (kModText[i] != "shape") table.insert(kModText[i], {Word::Kind::modifier, static_cast<uint16_t>(i), {}});
  }
  return table;
}

constexpr auto make_ops() {
  Table<512> table;
  for (size_t i = 0; i + 1 < std::size(kOpText); ++i) {
    table.insert(kOpText[i], {Word::Kind::modifier, static_cast<uint16_t>(i), {}});
  }
  return table;
}

constexpr auto make_specials() {
  Table<256> table;
  for (size_t i = 0; i + 1 < std::size(kSpecial); ++i) {
    table.insert(kSpecial[i].text, {Word::Kind::modifier, static_cast<uint16_t>(i), {}});
  }
  return table;
}

constexpr auto kWords = make_words();
constexpr auto kOps = make_ops();
constexpr auto kSpecials = make_specials();

static_assert(std::size(kTypeText) + std::size(kModText) + std::size(kSpaceText) + 6 < 700);
static_assert(std::size(kOpText) < 350 && std::size(kSpecial) < 180);

// Parses the digits at `at`. Returns false if there are none or more than four.
bool read_number(std::string_view text, size_t& at, uint16_t& number) {
  const size_t start = at;
  unsigned value = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9' && at - start < 4) {
    value = value * 10 + static_cast<unsigned>(text[at++] - '0');
  }
  number = static_cast<uint16_t>(value);
  return at > start;
}

bool read_shape(std::string_view text, Shape& shape) {
  size_t at = 0;
  if (text.size() < 4 || text[at++] != 'm' || !read_number(text, at, shape.m)) return false;
  if (at >= text.size() || text[at++] != 'n' || !read_number(text, at, shape.n)) return false;
  if (at == text.size()) return true;
  return text[at++] == 'k' && read_number(text, at, shape.k) && at == text.size();
}

}  // namespace

std::string_view text(Type type) { return kTypeText[static_cast<size_t>(type)]; }
unsigned bit_width(Type type) { return kTypeBits[static_cast<size_t>(type)]; }
std::string_view text(Space space) { return kSpaceText[static_cast<size_t>(space)]; }
std::string_view text(Op op) { return kOpText[static_cast<size_t>(op)]; }
Family family(Op op) { return kFamily[static_cast<size_t>(op)]; }
std::string_view family_name(Op op) { return kFamilyName[static_cast<size_t>(op)]; }
std::string_view text(SpecialRegister special) { return kSpecial[static_cast<size_t>(special)].text; }
Type type(SpecialRegister special) { return kSpecial[static_cast<size_t>(special)].type; }
unsigned first_version(SpecialRegister special) { return kSpecial[static_cast<size_t>(special)].version; }
unsigned first_target(SpecialRegister special) { return kSpecial[static_cast<size_t>(special)].sm; }
bool is_vector(SpecialRegister special) { return kSpecial[static_cast<size_t>(special)].vector; }

TypeKind kind(Type type) {
  switch (type) {
    case Type::none:
      return TypeKind::none;
    case Type::b1:
    case Type::b4:
    case Type::b6:
    case Type::b8:
    case Type::b16:
    case Type::b32:
    case Type::b64:
    case Type::b128:
      return TypeKind::bits;
    case Type::u2:
    case Type::u4:
    case Type::u8:
    case Type::u16:
    case Type::u32:
    case Type::u64:
      return TypeKind::unsigned_int;
    case Type::s2:
    case Type::s4:
    case Type::s8:
    case Type::s16:
    case Type::s32:
    case Type::s64:
      return TypeKind::signed_int;
    case Type::f16:
    case Type::bf16:
    case Type::tf32:
    case Type::f32:
    case Type::f64:
    case Type::e4m3:
    case Type::e5m2:
    case Type::e3m2:
    case Type::e2m3:
    case Type::e2m1:
    case Type::ue8m0:
    case Type::ue4m3:
      return TypeKind::floating;
    case Type::pred:
      return TypeKind::predicate;
    case Type::texref:
    case Type::samplerref:
    case Type::surfref:
      return TypeKind::opaque;
    default:
      return TypeKind::packed;
  }
}

Word find_word(std::string_view text) {
  if (const Word* word = kWords.find(text)) return *word;
  Word shape{Word::Kind::modifier, static_cast<uint16_t>(Mod::shape), {}};
  return read_shape(text, shape.shape) ? shape : Word{};
}

Op find_op(std::string_view text) {
  const Word* word = kOps.find(text);
  return word != nullptr ? static_cast<Op>(word->id) : Op::unknown;
}

SpecialRegister find_special(std::string_view text) {
  const Word* word = kSpecials.find(text);
  return word != nullptr ? static_cast<SpecialRegister>(word->id) : SpecialRegister::none;
}

Type find_type(std::string_view text) {
  const Word* word = kWords.find(text);
  return word != nullptr && word->kind == Word::Kind::type ? static_cast<Type>(word->id) : Type::none;
}

}  // namespace ptxkit::ptx
