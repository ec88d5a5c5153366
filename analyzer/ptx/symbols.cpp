#include "analyzer/ptx/symbols.hpp"

namespace ptxkit::ptx {
namespace {

// The low bit of a key's hash separates ranges from plain names, so that `%r` and `%r<5>` do not collide.
uint32_t key_hash(std::string_view name, bool range) {
  const uint32_t hash = hash_text(name);
  return ((hash ^ (hash >> 15)) & ~1u) | (range ? 1u : 0u);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void SymbolTable::open_scope() { scope_starts_.push_back(static_cast<uint32_t>(bindings_.size())); }

void SymbolTable::close_scope() {
  while (bindings_.size() > scope_starts_.back()) {
    slots_[bindings_.back().slot].binding = bindings_.back().hidden;
    bindings_.pop_back();
  }
  scope_starts_.pop_back();
}

size_t SymbolTable::probe(std::string_view name, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = (hash * 0x9e3779b1u >> 7) & mask;
  while (slots_[slot].data != nullptr) {
    const Slot& s = slots_[slot];
    if (s.hash == hash && std::string_view(s.data, s.size) == name) return slot;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void SymbolTable::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& s : old) {
    if (s.data == nullptr) continue;
    const size_t slot = probe({s.data, s.size}, s.hash);
    slots_[slot] = s;
    for (uint32_t b = s.binding; b != kNone; b = bindings_[b].hidden) bindings_[b].slot = static_cast<uint32_t>(slot);
  }
}

const Symbol* SymbolTable::find_key(std::string_view name, bool range) const {
  const Slot& slot = slots_[probe(name, key_hash(name, range))];
  return slot.binding == kNone ? nullptr : &bindings_[slot.binding].symbol;
}

const Symbol* SymbolTable::find_in_range(std::string_view name, uint32_t& index,
                                         const std::vector<RegisterDeclaration>& all) const {
  // `%rd12` may be number 12 of `%rd<>` or number 2 of `%rd1<>`: try the longest run of digits first. An index has at
  // most ten digits.
  size_t digits = name.size();
  while (digits > 1 && is_digit(name[digits - 1]) && name.size() - digits < 10) --digits;
  for (size_t split = digits; split < name.size(); ++split) {
    const Symbol* symbol = find_key(name.substr(0, split), true);
    if (symbol == nullptr) continue;
    uint64_t number = 0;
    for (size_t i = split; i < name.size(); ++i) number = number * 10 + static_cast<uint64_t>(name[i] - '0');
    if (number < all[symbol->id].count) {
      index = static_cast<uint32_t>(number);
      return symbol;
    }
  }
  return nullptr;
}

const Symbol* SymbolTable::find_plain_in_scope(std::string_view base, uint32_t count) const {
  const size_t start = scope_starts_.empty() ? 0 : scope_starts_.back();
  // Beyond this limit the check would make declarations quadratic. No compiler mixes so many.
  if (bindings_.size() - start > 4096) return nullptr;
  for (size_t i = start; i < bindings_.size(); ++i) {
    const Symbol& symbol = bindings_[i].symbol;
    const Slot& slot = slots_[bindings_[i].slot];
    const std::string_view name(slot.data, slot.size);
    if (symbol.kind == SymbolKind::register_range || name.size() <= base.size() || name.size() > base.size() + 9 ||
        name.substr(0, base.size()) != base) {
      continue;
    }
    uint32_t number = 0;
    bool digits = true;
    for (const char c : name.substr(base.size())) {
      digits = digits && is_digit(c);
      number = number * 10 + static_cast<uint32_t>(c - '0');
    }
    if (digits && number < count) return &symbol;
  }
  return nullptr;
}

const Symbol* SymbolTable::bind(std::string_view name, SymbolKind kind, uint32_t id, Offset at) {
  if (used_count_ * 2 >= slots_.size()) grow();
  const bool range = kind == SymbolKind::register_range;
  const uint32_t hash = key_hash(name, range);
  const size_t index = probe(name, hash);
  Slot& slot = slots_[index];
  if (slot.data == nullptr) {
    slot = {name.data(), static_cast<uint32_t>(name.size()), hash, kNone};
    ++used_count_;
  }
  if (slot.binding != kNone && bindings_[slot.binding].symbol.depth == depth()) return &bindings_[slot.binding].symbol;
  bindings_.push_back({{kind, id, depth(), at}, static_cast<uint32_t>(index), slot.binding});
  slot.binding = static_cast<uint32_t>(bindings_.size()) - 1;
  return nullptr;
}

}  // namespace ptxkit::ptx
