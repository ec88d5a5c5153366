// Writes the items whose blocks have been read, with a warp for each item: block after block, since a match may begin
// in any block before it.
#include <string>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_decode_batch.hpp"
#include "kernels/zstd/zstd_decode_item.hpp"

namespace ptxkit::kernels {

using namespace dsl;

KernelDefinition zstd_batch_execute() {
  return define_zstd_decode_kernel(
      KernelSpec{.name = std::string(kZstdBatchExecute),
                 .block = kZstdDecodeShape.block_threads,
                 .budget = {.registers = 88, .shared_bytes = ZstdOutput::kSharedBytes, .spill_bytes = 0},
                 .cost = {.threads_per_element = double{kWarpLanes} / kZstdBlockBytes, .note = "one warp an item"}},
      [](Kernel& k, const ZstdDecodeArguments& arguments) {
        const WarpU32 number = item_of_warp<kZstdDecodeShape>(k, arguments.item_count);
        k.return_if(written_zstd_record<1>(arguments.block_counts, number).load() == kZstdNotListed);
        const ZstdDecodeItem item(k, arguments, number);
        const ZstdScratch scratch(arguments, number);
        WarpVar slot(k, number);
        decode_zstd_item(k, arguments, number, item,
                         [&](const ZstdBlock& block, const ZstdSections& sections, const ZstdWalk& walk,
                             ZstdOutput& output, ZstdOutcome& outcome) {
                           const WarpU32 literal_state = written_zstd_record<1>(arguments.literal_states, *slot).load();
                           const auto [content_bytes, first, second, third] =
                               written_zstd_record<4>(arguments.block_states, *slot).template load_vector<4>();
                           slot += arguments.item_count;
                           outcome.fail_if((literal_state != 0) | (content_bytes == kZstdBadBlock),
                                           BatchStatus::cannot_decompress);
                           k.if_(outcome.is_ok(), [&] {
                             output.run({scratch.literals.at(block.literal_place),
                                         sections.literals.bytes(),
                                         scratch.sequences.at(times<2>(block.sequence_place)),
                                         sections.count(),
                                         content_bytes,
                                         {first, second, third},
                                         walk.window_bytes()});
                           });
                         });
      });
}

}  // namespace ptxkit::kernels
