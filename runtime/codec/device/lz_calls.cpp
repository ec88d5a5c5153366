#include "runtime/codec/device/lz_calls.hpp"

#include "kernels/lz77/abi.hpp"

namespace ptxkit::codec {

std::vector<KernelCall> lz_block_calls(MatchSearch search, const LzBlockRegions& regions, uint32_t count,
                                       size_t raw_stride_bytes, size_t lz_stride_bytes) {
  using namespace kernels;
  const LaunchSize size{count * raw_stride_bytes, count};
  const auto parts = [&](uint32_t part_bytes) {
    return count * static_cast<uint32_t>((raw_stride_bytes + part_bytes - 1) / part_bytes);
  };
  const uint32_t positions = parts(kLzBlockThreads), segments = parts(kLzSegmentBytes);
  const CallArgument raw = buffer(regions.raw), sizes = buffer(regions.sizes), matches = buffer(regions.matches),
                     resolved = buffer(regions.resolved), counts = buffer(regions.counts),
                     item_bytes = number(static_cast<uint32_t>(raw_stride_bytes)),
                     lz_stride_16 = number(static_cast<uint32_t>(lz_stride_bytes / kStrideUnitBytes));
  const std::vector<CallArgument> finding = {raw, sizes, matches, item_bytes};
  std::vector<KernelCall> calls;
  switch (search) {
    case MatchSearch::chains:
      calls = {{kLz77Link, size, count * kLzLinkBlocks, 32, {}, finding, {}},
               {kLz77Hash, size, positions, kLzBlockThreads, {}, finding, {}}};
      break;
    case MatchSearch::tables:
      calls = {{kLz77Table, size, parts(kLzTablePart), kLzTableStep, {}, finding, {}}};
  }
  calls.push_back({kLz77Lazy, size, positions, kLzBlockThreads, {}, {matches, resolved, sizes, item_bytes}, {}});
  calls.push_back({kDemuxCount, size, segments, 32, {}, {resolved, sizes, counts, item_bytes}, {}});
  calls.push_back({kDemuxScatter,
                   size,
                   segments,
                   32,
                   {},
                   {raw, sizes, resolved, counts, buffer(regions.lz), buffer(regions.stream_offsets),
                    buffer(regions.stream_sizes), item_bytes, lz_stride_16},
                   {}});
  return calls;
}

}  // namespace ptxkit::codec
