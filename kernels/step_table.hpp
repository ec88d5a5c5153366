// Hash tables of the compressors that look up and insert positions a step at a time, in shared memory. For each slot,
// one table holds the last position inserted by earlier steps. A smaller table holds the first position of the current
// step, which alone may be inserted.
//
// A position's name decides which one is first: names of later steps are larger than those of earlier ones, and within
// a step the first position has the largest name. An atomic maximum therefore gives the same result in any order. A
// barrier must separate enter_name() from first_named(), and both from the next step's.
#pragma once

#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

template <dsl::u32 Step, dsl::u32 HashBits, dsl::u32 NamesBits>
struct StepTable {
  static_assert((Step & (Step - 1)) == 0, "the bits of a position within its step");

  dsl::Ptr<dsl::shared, dsl::u16, 16> last_positions;  // modulo 65536; 0: no position yet
  dsl::Ptr<dsl::shared, dsl::u32, 16> names;

  LaneU32 last(const LaneU32& hash) const { return dsl::zext<dsl::u32>(last_slot(hash).load()); }
  static LaneU32 name_of(const LaneU32& position) { return position ^ (Step - 1); }
  void enter_name(const LaneU32& hash, const LaneU32& name) const {
    dsl::atomic_max(name_slot(hash), name, dsl::Order::relaxed, dsl::Scope::cta);
  }
  LaneU32 first_named(const LaneU32& hash) const { return name_slot(hash).load() ^ (Step - 1); }
  void enter(const LaneU32& hash, const LaneU32& position) const {
    last_slot(hash).store(dsl::trunc<dsl::u16>(position));
  }

 private:
  auto last_slot(const LaneU32& hash) const { return last_positions.at(hash >> (32 - HashBits)); }
  auto name_slot(const LaneU32& hash) const { return names.at(hash >> (32 - NamesBits)); }
};

}  // namespace ptxkit::kernels
