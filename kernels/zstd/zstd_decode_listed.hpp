// A compressed block that zstd_batch_index has listed, for the kernels that read its sections with a warp.
#pragma once

#include "kernels/zstd/zstd_decode_batch.hpp"
#include "kernels/zstd/zstd_decode_walk.hpp"

namespace ptxkit::kernels {

struct ZstdListedBlock {
  ZstdDecodeItem item;
  ZstdScratch scratch;
  ZstdBlock block;
  WarpU32 max_block_bytes;
};

// Calls read(listed) if block `slot` of the batch is listed.
template <class Read>
void if_zstd_block_is_listed(dsl::Kernel& k, const ZstdDecodeArguments& arguments, const WarpU32& slot,
                             const Read& read) {
  using namespace dsl;
  WarpVar is_listed(k, 0);
  const WarpU32 index = slot / arguments.item_count, number = slot - index * arguments.item_count;
  k.if_(index < arguments.blocks_per_item, [&] {
    const WarpU32 count = written_zstd_record<1>(arguments.block_counts, number).load();
    is_listed = zext<u32>((count != kZstdNotListed) & (index < count));
  });
  k.if_(*is_listed != 0, [&] {
    const ZstdDecodeItem item(k, arguments, number);
    const auto record = written_zstd_record<8>(arguments.blocks, slot);
    const auto [begin, max_block_bytes, literal_place, sequence_place] = record.template load_vector<4>();
    const auto [tree_at, literal_table, offset_table, match_table] = record.template at<4>().template load_vector<4>();
    const ZstdSource src = item.source();
    const WarpU32 bytes =
        (load_zstd_byte(src, begin - 3) | load_zstd_byte(src, begin - 2) << 8 | load_zstd_byte(src, begin - 1) << 16) >>
        3;
    mark_warp(k, Mark::item, bytes);
    read(ZstdListedBlock{item, ZstdScratch(arguments, number),
                         ZstdBlock{k.constant(static_cast<u32>(ZstdBlockType::compressed)),
                                   begin,
                                   begin + bytes,
                                   bytes,
                                   literal_place,
                                   sequence_place,
                                   tree_at,
                                   {literal_table, offset_table, match_table}},
                         max_block_bytes});
  });
}

}  // namespace ptxkit::kernels
