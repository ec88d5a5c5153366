// Names in nested scopes. One hash table maps a name to its innermost binding. A binding links to the one that it
// hides, and closing a scope pops its bindings. A look-up costs one probe at any depth, and opening a scope, which is
// frequent with inline assembly, costs nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/ptx/tree.hpp"

namespace ptxkit::ptx {

enum class SymbolKind : uint8_t {
  none,
  reg,             // a plain name: index into Function::register_declarations
  register_range,  // the same for `%r<10>`; bound under its base, separate from plain names
  variable,        // VariableId
  function,        // FunctionId
  label,           // LabelId
  table,           // index into Function::tables
};

struct Symbol {
  SymbolKind kind = SymbolKind::none;
  uint32_t id = kNone;
  uint32_t depth = 0;  // of its scope; 0 is the module
  Offset at = 0;
};

class SymbolTable {
 public:
  void open_scope();
  void close_scope();
  uint32_t depth() const { return static_cast<uint32_t>(scope_starts_.size()); }

  // The innermost binding of a name; null where there is none. Valid until the next call that binds a name or closes a
  // scope.
  const Symbol* find(std::string_view name) const { return find_key(name, false); }
  // The innermost range that contains `name`; `index` receives the position in it.
  const Symbol* find_in_range(std::string_view name, uint32_t& index,
                              const std::vector<RegisterDeclaration>& all) const;

  // A plain name of the current scope that the range `base<count>` would redeclare; null where there is none.
  const Symbol* find_plain_in_scope(std::string_view base, uint32_t count) const;

  // Binds a name in the current scope. Returns the existing binding if the scope has one, null otherwise.
  const Symbol* bind(std::string_view name, SymbolKind kind, uint32_t id, Offset at);

 private:
  struct Slot {
    const char* data = nullptr;
    uint32_t size = 0;
    uint32_t hash = 0;
    uint32_t binding = kNone;
  };
  struct Binding {
    Symbol symbol;
    uint32_t slot = 0;
    uint32_t hidden = kNone;
  };

  const Symbol* find_key(std::string_view name, bool range) const;
  size_t probe(std::string_view name, uint32_t hash) const;
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(256);
  size_t used_count_ = 0;
  std::vector<Binding> bindings_;
  std::vector<uint32_t> scope_starts_;
};

}  // namespace ptxkit::ptx
