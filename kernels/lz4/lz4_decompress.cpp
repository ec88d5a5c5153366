// LZ4 decompression of blocks at offsets in one buffer, with a warp for each block (lz4_decoder.hpp).
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_decoder.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition lz4_decompress() {
  constexpr u32 kWarps = kLz4DecompressShape.items_per_block;
  return define(
      KernelSpec{.name = std::string(kLz4Decompress),
                 .block = kLz4DecompressShape.block_threads,
                 .budget = {.registers = 56, .shared_bytes = BlockDecoder::shared_bytes(kWarps)},
                 .cost = {.threads_per_element = double{kWarpLanes} / kMaxPageBytes,
                          .buffers = {{"src", M},
                                      {"dst", N},
                                      {"src_offsets", 8},
                                      {"src_sizes", 4},
                                      {"dst_offsets", 8},
                                      {"dst_capacities", 4},
                                      {"dst_sizes", 4},
                                      {"statuses", 4}},
                          .note = "one warp a block; N is the decoded size, in blocks of 4096 bytes or more"}},
      [](Kernel& k, Arg<"src", Ptr<read_only, u8>> src, Arg<"src_offsets", Ptr<read_only, u64>> src_offsets,
         Arg<"src_sizes", Ptr<read_only, u32>> src_sizes, Arg<"dst", Ptr<global, u8>> dst,
         Arg<"dst_offsets", Ptr<read_only, u64>> dst_offsets, Arg<"dst_capacities", Ptr<read_only, u32>> dst_capacities,
         Arg<"dst_sizes", Ptr<global, u32>> dst_sizes, Arg<"statuses", Ptr<global, u32>> statuses,
         Arg<"item_count", u32> item_count) {
        const WarpU32 item = item_of_warp<kLz4DecompressShape>(k, item_count);
        const WarpU32 src_size = src_sizes.within(item_count).at(item).load();
        const WarpU32 capacity = dst_capacities.within(item_count).at(item).load();
        mark_warp(k, Mark::item, src_size);
        WarpVar status(k, static_cast<u32>(Lz4Status::item_too_large)), size_bytes(k, 0);
        k.if_((src_size <= kMaxBlockBytes) & (capacity <= kMaxBlockBytes), [&] {
          const auto room = dst.at(dst_offsets.within(item_count).at(item).load()).within(capacity);
          const auto block = src.at(src_offsets.within(item_count).at(item).load()).within(src_size);
          BlockDecoder decoder(k, block, src_size, room, capacity, BlockDecoder::workspace<kWarps>(k), {});
          decoder.decode();
          status = decoder.status();
          size_bytes = select(decoder.status() == static_cast<u32>(Lz4Status::ok), decoder.size_bytes(), 0);
        });
        mark_warp(k, Mark::status, *status);
        k.once_per_warp([&] {
          statuses.within(item_count).at(item).store(*status);
          dst_sizes.within(item_count).at(item).store(*size_bytes);
        });
      });
}

}  // namespace ptxkit::kernels
