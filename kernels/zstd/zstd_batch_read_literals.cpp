// Decodes the literals of the blocks that zstd_batch_index has listed, with a warp for each.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_decode_listed.hpp"
#include "kernels/zstd/zstd_decode_literals.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition zstd_batch_read_literals() {
  return define_zstd_decode_kernel(
      KernelSpec{.name = std::string(kZstdBatchReadLiterals),
                 .block = kZstdDecodeShape.block_threads,
                 .budget = {.registers = 64,
                            .shared_bytes = ZstdTableBuilder::kSharedBytes + ZstdLiteralsDecoder::kSharedBytes,
                            .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kZstdBlockBytes, .note = "one warp a block"}},
      [](Kernel& k, const ZstdDecodeArguments& arguments) {
        const WarpU32 slot = k.block();
        if_zstd_block_is_listed(k, arguments, slot, [&](const ZstdListedBlock& listed) {
          const ZstdSource src = listed.item.source();
          const ZstdLiteralsHead head(k, src, listed.block.begin, listed.block.end);
          ZstdTableBuilder builder(k);
          ZstdLiteralsDecoder literals(k, src, builder);
          // zstd_batch_index has seen that they fit.
          literals.decode(head, listed.block.tree_at, listed.scratch.literals.at(listed.block.literal_place),
                          head.bytes());
          const WarpU32 is_bad = zext<u32>(literals.is_bad());
          mark_warp(k, Mark::status, is_bad);
          k.once_per_warp([&] { arguments.literal_states.at(zext<u64>(slot)).within(1).store(is_bad); });
        });
      });
}

}  // namespace ptxkit::kernels
