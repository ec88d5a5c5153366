// Decodes the sequences of the blocks that zstd_batch_index has listed, with a warp for four. An offset that depends on
// the block before is stored as which of the three it is; zstd_batch_execute knows them.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_decode_listed.hpp"
#include "kernels/zstd/zstd_decode_sequences.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition zstd_batch_read_sequences() {
  constexpr u32 kBlocks = kZstdReadSequencesShape.items_per_block;
  return define_zstd_decode_kernel(
      KernelSpec{
          .name = std::string(kZstdBatchReadSequences),
          .block = kZstdReadSequencesShape.block_threads,
          .budget = {.registers = 80,
                     .shared_bytes = ZstdTableBuilder::kSharedBytes + ZstdSequencesDecoder<kBlocks>::kSharedBytes,
                     .spill_bytes = 0},
          .cost = {.threads_per_element = double{kWarpLanes} / kBlocks / kZstdBlockBytes,
                   .note = "one warp for four blocks"}},
      [](Kernel& k, const ZstdDecodeArguments& arguments) {
        ZstdTableBuilder builder(k);
        ZstdSequencesDecoder<kBlocks> sequences(k, builder);
        const WarpU32 first_slot = k.block() * kBlocks;
        LaneVar is_listed(k, 0);
        k.range(k.constant<u32>(0), u32{kBlocks}, 1, [&](const WarpU32& number) {
          if_zstd_block_is_listed(k, arguments, first_slot + number, [&](const ZstdListedBlock& listed) {
            const ZstdSource src = listed.item.source();
            const ZstdSections sections(k, src, listed.block.begin, listed.block.end, listed.max_block_bytes);
            // zstd_batch_index has seen that they fit.
            sequences.prepare(number, src, listed.item.size, listed.block, sections, listed.max_block_bytes,
                              listed.scratch.sequences.at(times<2>(listed.block.sequence_place)), sections.count());
            is_listed = select(k.lane() == number, k.constant<u32>(1), *is_listed);
          });
        });
        sequences.run();
        const auto& last = sequences.last_offsets();
        k.if_(*is_listed != 0, [&] {
          const LaneU32 content = select(sequences.is_bad(), k.constant(kZstdBadBlock), sequences.content_bytes());
          arguments.block_states.at(times<4>(zext<u64>(first_slot + k.lane())))
              .within(4)
              .store_vector(std::array<LaneU32, 4>{content, *last[0], *last[1], *last[2]});
        });
        mark_warp(k, Mark::status, ballot(sequences.is_bad()));
      });
}

}  // namespace ptxkit::kernels
