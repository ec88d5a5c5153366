// The value domain: facts about every SSA value that hold on every run.
//
// A value is represented as base + offset. The base is an opaque object: the address of a variable, a parameter, or a
// word loaded from memory. For the offset the domain tracks known bits (hence its residue modulo every power of two)
// and an unsigned interval. For the value it tracks which state spaces it may point into, and whether it is a generic
// or a direct address. Separating the base makes alignment provable: the base's alignment is a contract, named in
// reports, and everything added to it must be proved.
//
// The facts are the greatest fixed point of transfer functions over SSA, found by sweeps in reverse postorder with
// widening of intervals at phis. A guarded result is joined with the value that it may keep; an undefined value
// contributes nothing to a join.
#pragma once

#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/flow/bits.hpp"
#include "analyzer/flow/graph.hpp"
#include "analyzer/flow/launch.hpp"
#include "analyzer/flow/operation.hpp"
#include "analyzer/flow/ssa.hpp"
#include "analyzer/ptx/names.hpp"
#include "analyzer/ptx/tree.hpp"

namespace ptxkit::flow {

using BaseId = uint32_t;
inline constexpr BaseId kNoBase = 0;

struct Base {
  enum class Kind : uint8_t { none, variable, parameter, loaded, merged } kind = Kind::none;
  uint32_t id = kNone;            // VariableId of variable and parameter, ValueId of loaded and merged
  uint64_t offset_bytes = 0;      // of a parameter: the offset within it
  std::vector<BaseId> members{};  // of merged: the bases that a phi or selp selects from
};

// Set of state spaces that an address may lie in. `kUnknownSpace` stands for a pointer of unknown origin.
using SpaceSet = uint8_t;
inline constexpr SpaceSet kGlobalSet = 1, kSharedSet = 2, kLocalSet = 4, kConstantSet = 8, kParamSet = 16,
                          kUnknownSpace = 32;
SpaceSet set_of(ptx::Space space);
// The only space of the set; nothing where there are none, several or an unknown one.
std::optional<ptx::Space> only_space(SpaceSet set);

struct Fact {
  bool reached = false;  // false: unreachable, or only undefined values
  BaseId base = kNoBase;
  SpaceSet points_to = 0;         // empty: not a pointer
  bool may_be_direct = false;     // an address within its space's own window
  bool may_be_generic = false;    // a generic address, from cvta
  bool from_cvta_shared = false;  // on some path a generic address of shared memory
  Bits bits;                      // of the value minus its base
  uint64_t low = 0, high = 0;     // the same as an unsigned number of the register's width
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
  // Whether the base is itself used or declared as an address: it is then a pointer, not an offset.
  bool is_surely_pointer(BaseId id) const { return used_as_pointer_[id]; }
  Bits absolute(const Fact& fact) const;  // known bits of base + offset
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
