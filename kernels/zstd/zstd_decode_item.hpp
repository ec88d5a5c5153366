// Decodes an item with one warp, where something else knows how to read a compressed block.
#pragma once

#include "kernels/zstd/xxh64.hpp"
#include "kernels/zstd/zstd_decode_batch.hpp"
#include "kernels/zstd/zstd_decode_output.hpp"
#include "kernels/zstd/zstd_decode_walk.hpp"

namespace ptxkit::kernels {

// Calls run_block(block, sections, walk, output, outcome) for each compressed block; it writes the block's bytes, or
// fails the outcome.
template <class RunBlock>
void decode_zstd_item(dsl::Kernel& k, const ZstdDecodeArguments& arguments, const WarpU32& number,
                      const ZstdDecodeItem& item, const RunBlock& run_block) {
  using namespace dsl;
  mark_warp(k, Mark::item, item.size);
  ZstdOutcome outcome(k);
  item.check(outcome);
  const ZstdSource src = item.source();
  const ZstdRoom dst = item.destination();
  ZstdOutput output(k, dst, item.capacity, item.overrun_status, outcome);
  ZstdWalk walk(k, src, item.size, outcome);
  const auto begin = [&] {
    outcome.fail_with(walk.has_stated_bytes() & (walk.stated_bytes() > output.left()), item.overrun_status);
    output.begin_frame();
  };
  const auto take = [&](const ZstdBlock& block, const ZstdSections& sections) {
    mark_warp(k, Mark::parse, block.begin);
    k.if_(block.type == static_cast<u32>(ZstdBlockType::compressed), [&] {
       run_block(block, sections, walk, output, outcome);
     }).else_([&] {
      const WarpU32 step = select(block.type == static_cast<u32>(ZstdBlockType::raw), k.constant<u32>(1), 0);
      output.copy(src.at(block.begin), block.bytes, step);
    });
  };
  const auto end = [&] {
    outcome.fail_if(walk.has_stated_bytes() & (output.frame_bytes() != walk.stated_bytes()),
                    BatchStatus::cannot_decompress);
    k.if_(outcome.is_ok() & walk.has_checksum(), [&] {
      const WarpU32 stored = src.at(walk.position()).load_bytewise<u32>();
      const WarpU32 computed = trunc<u32>(xxh64_of(k, dst.at(output.frame_at()), output.frame_bytes()));
      outcome.fail_if(computed != stored, BatchStatus::bad_checksum);
    });
  };
  k.if_(outcome.is_ok(), [&] { walk.run(begin, take, end); });
  mark_warp(k, Mark::status, outcome.status());
  k.once_per_warp([&] {
    k.if_(arguments.output_bytes.address() != 0, [&] {
      arguments.output_bytes.within(arguments.item_count)
          .at(number)
          .store(zext<u64>(select(outcome.is_ok(), output.size_bytes(), 0)));
    });
    k.if_(arguments.statuses.address() != 0,
          [&] { arguments.statuses.within(arguments.item_count).at(number).store(outcome.status()); });
  });
}

}  // namespace ptxkit::kernels
