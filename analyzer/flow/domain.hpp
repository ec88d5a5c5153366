// The value domain: what is known of every SSA value on every run.
//
// A value is read as base + offset. The base is an object that arrives whole: the address of a variable, a parameter, a
// word loaded from memory. Of the offset the domain knows bits (so its residue modulo every power of two) and an
// unsigned interval; of the whole, which state spaces it may point into and whether it is a generic or a direct
// address. Splitting the base off is what makes alignment provable: the base's alignment is a contract, named in
// reports, and everything added to it must be proved.
//
// The facts are the greatest fixed point of transfer functions over SSA, found by sweeps in reverse postorder with
// intervals widened at phis. A guarded result joins with the value it may keep; an undefined value joins as nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/operation.hpp"

namespace ptxkit::flow {

using BaseId = uint32_t;
inline constexpr BaseId kNoBase = 0;

struct Base {
  enum class Kind : uint8_t { none, variable, parameter, loaded, merged } kind = Kind::none;
  uint32_t id = kNone;            // VariableId of variable and parameter, ValueId of loaded and merged
  uint64_t offset_bytes = 0;      // of a parameter: where in it
  std::vector<BaseId> members{};  // of merged: what a phi or selp chooses from
};

// Sets of state spaces that an address may lie in; `kUnknownSpace` stands for a pointer whose origin is not seen.
using SpaceSet = uint8_t;
inline constexpr SpaceSet kGlobalSet = 1, kSharedSet = 2, kLocalSet = 4, kConstantSet = 8, kParamSet = 16,
                          kUnknownSpace = 32;
SpaceSet set_of(ptx::Space space);
// The one space of a set; nothing for none, several or unknown.
std::optional<ptx::Space> only_space(SpaceSet set);

struct Fact {
  bool reached = false;  // false: nothing flows here, or only undefined values
  BaseId base = kNoBase;
  SpaceSet points_to = 0;         // empty: no pointer
  bool may_be_direct = false;     // an address of a space's own window
  bool may_be_generic = false;    // a generic address, by cvta
  bool from_cvta_shared = false;  // on some path the generic address of shared memory
  Bits bits;                      // of the value less its base
  uint64_t low = 0, high = 0;     // the same, as an unsigned number of the register's width
  bool operator==(const Fact&) const = default;
};

class Domain {
 public:
  Domain(const ptx::Module& module, const Ssa& ssa, const LaunchShape& shape);

  const Ssa& ssa() const { return *ssa_; }
  const ptx::Module& module() const { return *module_; }
  const LaunchShape& shape() const { return shape_; }
  const Fact& fact(ValueId id) const { return facts_[id]; }
  Fact fact_of(const Source& source, unsigned width) const;
  const Base& base(BaseId id) const { return bases_[id]; }
  uint32_t base_count() const { return static_cast<uint32_t>(bases_.size()); }
  // Whether something uses the base itself as an address, or it is declared as one: it is a pointer, not an offset.
  bool is_surely_pointer(BaseId id) const { return used_as_pointer_[id]; }
  Bits absolute(const Fact& fact) const;  // bits of base and offset together
  // A name for reports: "parameter 'src'", "shared variable 'tile'", "the pointer loaded here".
  std::string describe(BaseId id) const;

 private:
  Fact transfer(ValueId id);
  Fact computed(const Operation& operation, ValueId id);
  Fact loaded(const Operation& operation, ValueId id);
  Fact sum(const Fact& a, const Fact& b, unsigned width, bool subtract) const;
  Fact choose(const Fact& a, const Fact& b, ValueId at);  // join; different bases become the merged base of `at`
  BaseId parameter_base(ptx::VariableId id, uint64_t offset_bytes);
  BaseId value_base(Base::Kind kind, ValueId id);
  unsigned priority(BaseId id) const;
  bool is_used_as_pointer(ValueId id, unsigned depth) const;

  const ptx::Module* module_;
  const Ssa* ssa_;
  LaunchShape shape_;
  std::vector<Fact> facts_;
  std::vector<Base> bases_;
  std::vector<bool> used_as_pointer_;                 // per base
  std::map<ptx::VariableId, BaseId> variable_bases_;  // of the variables that the function names
  std::vector<BaseId> value_bases_;                   // per value
  std::map<std::pair<ptx::VariableId, uint64_t>, BaseId> parameter_bases_;
};

}  // namespace ptxkit::flow
