// The frame of the BWT kernels: parameters, limits, status and length of an item, one CTA an item.
#pragma once

#include <string>
#include <utility>

#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/cta_list.hpp"

namespace ptxkit::kernels {

struct BwtItem {
  dsl::Kernel& k;
  dsl::Ptr<dsl::ReadOnly, dsl::u8, kStrideUnitBytes> src;
  BlockU32 src_size;
  dsl::Ptr<dsl::Global, dsl::u8, kStrideUnitBytes> dst;
  BlockU32 capacity, item_bytes;
  Words scratch;
};

// What becomes of an item.
struct BwtOutcome {
  WarpU32 status, size_bytes;
};

// body(item) -> BwtOutcome; all warps return the same. scratch_words(item_bytes) is a device value, of one item.
template <class ScratchWords, class Body>
dsl::KernelDefinition define_bwt(dsl::KernelSpec spec, ScratchWords scratch_words, Body body,
                                 dsl::Where where = dsl::Where::current()) {
  using namespace dsl;
  return define(
      std::move(spec),
      [scratch_words, body](Kernel& k, Arg<"src", Ptr<ReadOnly, u8, kStrideUnitBytes>> src,
                            Arg<"src_sizes", Ptr<ReadOnly, u32>> src_sizes,
                            Arg<"dst", Ptr<Global, u8, kStrideUnitBytes>> dst,
                            Arg<"dst_sizes", Ptr<Global, u32>> dst_sizes, Arg<"statuses", Ptr<Global, u32>> statuses,
                            Arg<"scratch", Ptr<Global, u32, 4>> scratch, Arg<"src_stride_16", u32> src_stride_16,
                            Arg<"dst_stride_16", u32> dst_stride_16, Arg<"item_bytes", u32> item_bytes) {
        const BlockU32 index = k.block();
        const BlockU32 src_size = src_sizes.at(index).load();
        mark_block(k, Mark::item, src_size);
        const auto words = scratch_words(item_bytes);
        const auto at_stride = [&](const auto& base, const BlockU32& stride_16) {
          return base.at(times<kStrideUnitBytes>(zext<u64>(index) * zext<u64>(stride_16)));
        };
        const BwtItem item{.k = k,
                           .src = at_stride(src, src_stride_16).template within<kStrideUnitBytes>(src_size),
                           .src_size = src_size,
                           .dst = at_stride(dst, dst_stride_16).within(dst_stride_16 * kStrideUnitBytes),
                           .capacity = dst_stride_16 * kStrideUnitBytes,
                           .item_bytes = item_bytes,
                           .scratch = scratch.at(zext<u64>(index) * zext<u64>(words)).within(words)};
        const BwtOutcome outcome = body(item);
        mark_block(k, Mark::status, outcome.status);
        k.once_per_block([&] {
          statuses.at(index).store(outcome.status);
          dst_sizes.at(index).store(
              select(outcome.status == static_cast<u32>(StreamStatus::ok), outcome.size_bytes, 0));
        });
      },
      where);
}

}  // namespace ptxkit::kernels
