// The frame of the kernels that give a CTA to an item: parameters, limits, status and length.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/cta_list.hpp"

namespace ptxkit::kernels {

// An item of a CTA.
struct ColumnItem {
  dsl::Kernel& k;
  dsl::Ptr<dsl::ReadOnly, dsl::u8, kStrideUnitBytes> src;
  BlockU32 src_size;
  dsl::Ptr<dsl::Global, dsl::u8, kStrideUnitBytes> dst;
  BlockU32 capacity;
};

// The same with a scratch, and its largest raw size.
struct BwtItem : ColumnItem {
  BlockU32 item_bytes;
  Words scratch;
};

// What becomes of an item; all warps say the same.
struct ColumnOutcome {
  WarpU32 status, size_bytes;
};
inline BlockU32 status_value(dsl::Kernel& k, StreamStatus status) { return k.constant(static_cast<dsl::u32>(status)); }

// The buffers of a launch over items of `item_bytes`: these, and what every item has a word of.
inline std::vector<dsl::Buffer> column_buffers(std::vector<dsl::Buffer> buffers, uint32_t item_bytes) {
  for (const char* name : {"src_sizes", "dst_sizes", "statuses"}) buffers.push_back({name, dsl::N / (item_bytes / 4)});
  return buffers;
}

namespace detail {

using ColumnSrc = dsl::Arg<"src", dsl::Ptr<dsl::ReadOnly, dsl::u8, kStrideUnitBytes>>;
using ColumnSrcSizes = dsl::Arg<"src_sizes", dsl::Ptr<dsl::ReadOnly, dsl::u32>>;
using ColumnDst = dsl::Arg<"dst", dsl::Ptr<dsl::Global, dsl::u8, kStrideUnitBytes>>;
using ColumnDstSizes = dsl::Arg<"dst_sizes", dsl::Ptr<dsl::Global, dsl::u32>>;
using ColumnStatuses = dsl::Arg<"statuses", dsl::Ptr<dsl::Global, dsl::u32>>;
using ColumnSrcStride = dsl::Arg<"src_stride_16", dsl::u32>;
using ColumnDstStride = dsl::Arg<"dst_stride_16", dsl::u32>;

inline ColumnItem open_item(dsl::Kernel& k, const ColumnSrc& src, const ColumnSrcSizes& src_sizes, const ColumnDst& dst,
                            const ColumnSrcStride& src_stride_16, const ColumnDstStride& dst_stride_16) {
  using namespace dsl;
  const BlockU32 src_size = src_sizes.at(k.block()).load();
  const BlockU32 capacity = min(dst_stride_16, kMaxTransformBytes / kStrideUnitBytes) * kStrideUnitBytes;
  mark_block(k, Mark::item, src_size);
  const auto at_stride = [&](const auto& base, const BlockU32& stride_16) {
    return base.at(times<kStrideUnitBytes>(zext<u64>(k.block()) * zext<u64>(stride_16)));
  };
  return {.k = k,
          .src = at_stride(src, src_stride_16).template within<kStrideUnitBytes>(src_size),
          .src_size = src_size,
          .dst = at_stride(dst, dst_stride_16).within(capacity),
          .capacity = capacity};
}

inline void close_item(dsl::Kernel& k, const ColumnOutcome& outcome, const ColumnDstSizes& dst_sizes,
                       const ColumnStatuses& statuses) {
  using namespace dsl;
  mark_block(k, Mark::status, outcome.status);
  k.once_per_block([&] {
    statuses.at(k.block()).store(outcome.status);
    dst_sizes.at(k.block()).store(select(outcome.status == static_cast<u32>(StreamStatus::ok), outcome.size_bytes, 0));
  });
}

}  // namespace detail

// body(item) -> ColumnOutcome.
template <class Body>
dsl::KernelDefinition define_column(dsl::KernelSpec spec, Body body, dsl::Where where = dsl::Where::current()) {
  return dsl::define(
      std::move(spec),
      [body](dsl::Kernel& k, detail::ColumnSrc src, detail::ColumnSrcSizes src_sizes, detail::ColumnDst dst,
             detail::ColumnDstSizes dst_sizes, detail::ColumnStatuses statuses, detail::ColumnSrcStride src_stride_16,
             detail::ColumnDstStride dst_stride_16) {
        const ColumnItem item = detail::open_item(k, src, src_sizes, dst, src_stride_16, dst_stride_16);
        detail::close_item(k, body(item), dst_sizes, statuses);
      },
      where);
}

// The same of a BwtItem. scratch_words(item_bytes) is a device value, of one item.
template <class ScratchWords, class Body>
dsl::KernelDefinition define_bwt(dsl::KernelSpec spec, ScratchWords scratch_words, Body body,
                                 dsl::Where where = dsl::Where::current()) {
  using namespace dsl;
  return define(
      std::move(spec),
      [scratch_words, body](Kernel& k, detail::ColumnSrc src, detail::ColumnSrcSizes src_sizes, detail::ColumnDst dst,
                            detail::ColumnDstSizes dst_sizes, detail::ColumnStatuses statuses,
                            Arg<"scratch", Ptr<Global, u32>> scratch, detail::ColumnSrcStride src_stride_16,
                            detail::ColumnDstStride dst_stride_16, Arg<"item_bytes", u32> item_bytes) {
        const auto words = scratch_words(item_bytes);
        const BwtItem item{detail::open_item(k, src, src_sizes, dst, src_stride_16, dst_stride_16), item_bytes,
                           scratch.at(zext<u64>(k.block()) * zext<u64>(words)).within(words)};
        detail::close_item(k, body(item), dst_sizes, statuses);
      },
      where);
}

}  // namespace ptxkit::kernels
