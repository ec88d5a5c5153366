// What a compressor that looks up and enters positions a step at a time has of one hash, in shared memory: the last
// position that entered each slot, and in fewer slots who of this step may enter.
//
// Between naming and first_named() a barrier stands, and between those and the next step's. Order decides nothing:
// names of later steps are larger than those of earlier ones, and within a step the first position's is the largest.
#pragma once

#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

template <dsl::u32 Step, dsl::u32 HashBits, dsl::u32 NamesBits>
struct StepTable {
  static_assert((Step & (Step - 1)) == 0, "the bits of a position within its step");

  dsl::Ptr<dsl::shared, dsl::u16, 16> last_positions;  // modulo 65536; 0 where nothing has entered
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
