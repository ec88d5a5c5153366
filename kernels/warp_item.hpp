// Helpers of the kernels in which a warp, or a CTA, works on one item.
#pragma once

#include "builder/dsl.hpp"
#include "builder/types.hpp"
#include "kernels/abi.hpp"

namespace ptxkit::kernels {

using BlockU32 = dsl::Expr<dsl::u32, dsl::Rate::block>;
using WarpU32 = dsl::Expr<dsl::u32, dsl::Rate::warp>;
using WarpBool = dsl::Expr<bool, dsl::Rate::warp>;
using LaneU32 = dsl::Expr<dsl::u32, dsl::Rate::thread>;
using LaneBool = dsl::Expr<bool, dsl::Rate::thread>;
using WarpVar = dsl::Var<dsl::u32, dsl::Rate::warp>;

// An item's bytes: 16-byte aligned, at an address that each warp has of its own.
using ItemSource = dsl::Ptr<dsl::read_only, dsl::u8, kStrideUnitBytes, dsl::Rate::warp>;
using ItemRoom = dsl::Ptr<dsl::global, dsl::u8, kStrideUnitBytes, dsl::Rate::warp>;

// The index of this warp's item. Warps at or after `item_count` leave the kernel.
template <const LaunchShape& Shape>
WarpU32 item_of_warp(dsl::Kernel& k, const BlockU32& item_count) {
  static_assert(Shape.block_threads == Shape.items_per_block * dsl::kWarpLanes, "a warp works on one item");
  const WarpU32 item = k.block() * Shape.items_per_block + k.warp();
  k.return_if(item >= item_count);
  return item;
}

// Writes a record of the warp to the debug buffer; nothing in other builds.
inline void mark_warp(dsl::Kernel& k, Mark mark, const WarpU32& value, dsl::Where where = dsl::Where::current()) {
  if (k.is_debug()) k.once_per_warp([&] { k.mark(static_cast<dsl::u32>(mark), value, where); });
}

// The same for the CTA, from its first thread.
inline void mark_block(dsl::Kernel& k, Mark mark, const WarpU32& value, dsl::Where where = dsl::Where::current()) {
  if (k.is_debug()) k.once_per_block([&] { k.mark(static_cast<dsl::u32>(mark), value, where); });
}

// The address of the item; `stride_16` is in units of 16 bytes.
template <class Pointer, class Stride>
auto at_item(const Pointer& base, const WarpU32& item, const Stride& stride_16) {
  return base.at(dsl::times<kStrideUnitBytes>(dsl::zext<dsl::u64>(item) * dsl::zext<dsl::u64>(stride_16)));
}

// Whether `size` bytes fit a stride of `stride_16` * 16 bytes. The arithmetic cannot wrap.
template <class Size, class Stride>
auto fits_stride(const Size& size, const Stride& stride_16) {
  return size / kStrideUnitBytes + dsl::zext<dsl::u32>(size % kStrideUnitBytes != 0) <= stride_16;
}

// Calls body(i) for every i < count, in lane i % 32. The loop itself is uniform, so the warp stays converged.
template <class Count, class Body>
void for_each_lane(dsl::Kernel& k, const Count& count, const Body& body) {
  k.range(0, count, dsl::kWarpLanes, [&](const auto& first) {
    const LaneU32 i = first + k.lane();
    k.if_(i < count, [&] { body(i); });
  });
}

// Copies an item as it is: 16 bytes for each lane and iteration, then the remaining bytes.
inline void copy_raw(dsl::Kernel& k, const ItemSource& src, const ItemRoom& dst, const WarpU32& size) {
  using namespace dsl;
  const WarpU32 vector_count = size / kStrideUnitBytes;
  for_each_lane(k, vector_count, [&](const LaneU32& i) {
    dst.as<u32>().at(times<4>(i)).store_vector(src.as<u32>().at(times<4>(i)).load_vector<4>());
  });
  const WarpU32 copied = vector_count * kStrideUnitBytes;
  for_each_lane(k, size - copied, [&](const LaneU32& i) { dst.at(copied + i).store(src.at(copied + i).load()); });
}

// Whether the `size` bytes at `src` are all zero. Each iteration votes on 128 bytes; the first that is not zero ends
// the loop.
inline WarpBool is_all_zero(dsl::Kernel& k, const ItemSource& src, const WarpU32& size) {
  WarpVar position(k, 0), found(k, 0);
  k.warp_loop([&](auto& words) {
    words.break_if(*position >= size);
    const LaneU32 first_byte = *position + k.lane() * 4;
    const LaneBool inside = first_byte < size;
    // Lanes past the end read the item's first word and do not vote. The bytes past the end of the last word are
    // shifted out.
    const LaneU32 word = src.as<dsl::u32>().at(dsl::select(inside, first_byte, 0) / 4).load();
    const LaneU32 missing_bytes = 4 - dsl::min(dsl::select(inside, size - first_byte, 4), 4);
    found = dsl::ballot(inside & ((word << (missing_bytes * 8)) != 0));
    position += 4 * dsl::kWarpLanes;
    words.break_if(*found != 0);
  });
  return *found == 0;
}

}  // namespace ptxkit::kernels
