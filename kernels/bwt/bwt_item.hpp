// The common parts of kernels with a CTA for each item: move-to-front and zero runs, which are transforms, and the
// suffix sorts and their inverse, whose items begin at strides of 16 bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/bwt/abi.hpp"
#include "kernels/bwt/cta_list.hpp"

namespace ptxkit::kernels {

// An item of a transform; `capacity` is in bytes.
struct ColumnItem {
  dsl::Kernel& k;
  dsl::Ptr<dsl::read_only, dsl::u8, 1> src;
  BlockU32 src_size;
  dsl::Ptr<dsl::global, dsl::u8> dst;
  BlockU32 capacity;
};

// An item of a kernel with strides.
struct StridedItem {
  dsl::Kernel& k;
  dsl::Ptr<dsl::read_only, dsl::u8, kStrideUnitBytes> src;
  BlockU32 src_size;
  dsl::Ptr<dsl::global, dsl::u8, kStrideUnitBytes> dst;
  BlockU32 capacity;
};

// An item of a kernel with strides and a scratch; `item_bytes` is the largest raw size.
struct BwtItem : StridedItem {
  BlockU32 item_bytes;
  Words scratch;
};

// The result of an item. All warps have the same values.
struct CtaOutcome {
  WarpU32 status, size_bytes;
};
inline BlockU32 status_value(dsl::Kernel& k, StreamStatus status) { return k.constant(static_cast<dsl::u32>(status)); }

// `buffers`, and the arrays with a word for each item.
inline std::vector<dsl::Buffer> strided_buffers(std::vector<dsl::Buffer> buffers) {
  for (const char* name : {"src_sizes", "dst_sizes", "statuses"}) buffers.push_back({name, 4});
  return buffers;
}
// Room for bwt_block_bytes(N): the raw bytes, a row for each segment, and the length. A multiple of the strides' unit
// if N is one.
inline constexpr dsl::SizeExpr kBwtBlockRoom = dsl::N + dsl::N / (4 * kBwtSegmentBytes) * 16 + 16;

namespace detail {

using StridedSrc = dsl::Arg<"src", dsl::Ptr<dsl::read_only, dsl::u8, kStrideUnitBytes>>;
using StridedSrcSizes = dsl::Arg<"src_sizes", dsl::Ptr<dsl::read_only, dsl::u32>>;
using StridedDst = dsl::Arg<"dst", dsl::Ptr<dsl::global, dsl::u8, kStrideUnitBytes>>;
using StridedDstSizes = dsl::Arg<"dst_sizes", dsl::Ptr<dsl::global, dsl::u32>>;
using StridedStatuses = dsl::Arg<"statuses", dsl::Ptr<dsl::global, dsl::u32>>;
using SrcStride = dsl::Arg<"src_stride_16", dsl::u32>;
using DstStride = dsl::Arg<"dst_stride_16", dsl::u32>;

inline StridedItem open_item(dsl::Kernel& k, const StridedSrc& src, const StridedSrcSizes& src_sizes,
                             const StridedDst& dst, const SrcStride& src_stride_16, const DstStride& dst_stride_16) {
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

inline void close_item(dsl::Kernel& k, const CtaOutcome& outcome, const StridedDstSizes& dst_sizes,
                       const StridedStatuses& statuses) {
  using namespace dsl;
  mark_block(k, Mark::status, outcome.status);
  k.once_per_block([&] {
    statuses.at(k.block()).store(outcome.status);
    dst_sizes.at(k.block()).store(select(outcome.status == static_cast<u32>(StreamStatus::ok), outcome.size_bytes, 0));
  });
}

}  // namespace detail

// Defines a transform with a CTA of kColumnThreads. body(ColumnItem) returns a CtaOutcome.
template <class Body>
dsl::KernelDefinition define_column(std::string_view name, std::vector<dsl::Buffer> buffers, dsl::u32 shared_bytes,
                                    Body body, dsl::Where where = dsl::Where::current()) {
  using namespace dsl;
  for (const char* offsets : {"src_offsets", "dst_offsets"}) buffers.push_back({offsets, 8});
  for (const char* words : {"src_sizes", "dst_capacities", "dst_sizes", "statuses"}) buffers.push_back({words, 4});
  return define(
      KernelSpec{.name = std::string(name),
                 .block = kColumnThreads,
                 .min_blocks = 2,
                 .budget = {.registers = 64, .shared_bytes = shared_bytes},
                 .cost = {.threads_per_element = double{kColumnThreads} / kTransformItemBytes,
                          .buffers = std::move(buffers),
                          .note = "one CTA an item, which is of 64 KiB here"}},
      [body](Kernel& k, Arg<"src", Ptr<read_only, u8>> src, Arg<"src_offsets", Ptr<read_only, u64>> src_offsets,
             Arg<"src_sizes", Ptr<read_only, u32>> src_sizes, Arg<"dst", Ptr<global, u8>> dst,
             Arg<"dst_offsets", Ptr<read_only, u64>> dst_offsets,
             Arg<"dst_capacities", Ptr<read_only, u32>> dst_capacities, Arg<"dst_sizes", Ptr<global, u32>> dst_sizes,
             Arg<"statuses", Ptr<global, u32>> statuses, Arg<"item_count", u32> item_count) {
        const BlockU32 index = k.block();
        k.return_if(index >= item_count);
        const BlockU32 src_size = src_sizes.at(index).load(), capacity = dst_capacities.at(index).load();
        mark_block(k, Mark::item, src_size);
        const ColumnItem item{.k = k,
                              .src = src.at(src_offsets.at(index).load()).within(src_size),
                              .src_size = src_size,
                              .dst = dst.at(dst_offsets.at(index).load()).within(capacity),
                              .capacity = capacity};
        detail::close_item(k, body(item), dst_sizes, statuses);
      },
      where);
}

// Defines a kernel with strides. body(StridedItem) returns a CtaOutcome.
template <class Body>
dsl::KernelDefinition define_strided(dsl::KernelSpec spec, Body body, dsl::Where where = dsl::Where::current()) {
  return dsl::define(
      std::move(spec),
      [body](dsl::Kernel& k, detail::StridedSrc src, detail::StridedSrcSizes src_sizes, detail::StridedDst dst,
             detail::StridedDstSizes dst_sizes, detail::StridedStatuses statuses, detail::SrcStride src_stride_16,
             detail::DstStride dst_stride_16) {
        const StridedItem item = detail::open_item(k, src, src_sizes, dst, src_stride_16, dst_stride_16);
        detail::close_item(k, body(item), dst_sizes, statuses);
      },
      where);
}

// Defines a kernel with strides and a scratch. body(BwtItem) returns a CtaOutcome. scratch_pairs(item_bytes), a device
// value, is half the number of scratch words of an item.
template <class ScratchPairs, class Body>
dsl::KernelDefinition define_bwt(dsl::KernelSpec spec, ScratchPairs scratch_pairs, Body body,
                                 dsl::Where where = dsl::Where::current()) {
  using namespace dsl;
  return define(
      std::move(spec),
      [scratch_pairs, body](Kernel& k, detail::StridedSrc src, detail::StridedSrcSizes src_sizes,
                            detail::StridedDst dst, detail::StridedDstSizes dst_sizes, detail::StridedStatuses statuses,
                            Arg<"scratch", Words> scratch, detail::SrcStride src_stride_16,
                            detail::DstStride dst_stride_16, Arg<"item_bytes", u32> item_bytes) {
        const auto pairs = scratch_pairs(item_bytes);
        const BwtItem item{detail::open_item(k, src, src_sizes, dst, src_stride_16, dst_stride_16), item_bytes,
                           scratch.at(times<2>(zext<u64>(k.block()) * zext<u64>(pairs))).within(pairs * 2)};
        detail::close_item(k, body(item), dst_sizes, statuses);
      },
      where);
}

}  // namespace ptxkit::kernels
