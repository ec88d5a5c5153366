// Compresses and decompresses whole `.ptz` files on all cores, or by kernels.
#pragma once

#include <span>
#include <vector>

#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

struct PtzOptions {
  BlockCoder* coder = nullptr;               // what codes the blocks; null: the executor
  MatchSearch search = MatchSearch::chains;  // of compress_ptz
  Progress progress = {};
  // The memory budget bounds blocks and the memory for coding them. A sixteenth of it is for the block table, 16 bytes
  // a block, which is written at the end of the file. `prefetch` counts batches of blocks.
  StreamLimits limits = {};
};

// Codes each block independently with `options.coder`; the bytes are the same for every coder. `executor` computes
// checksums. Reading, coding and writing overlap (pipeline.hpp).
Result<StreamTotals> compress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                  const format::PtzHeader& header, const PtzOptions& options = {});

// Verifies sizes and checksums. An error names the block; the blocks before it have been written.
Result<StreamTotals> decompress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                    const PtzOptions& options = {});

// Decodes one block of a container, even if others are damaged; or several, each with an outcome of its own.
Result<std::vector<uint8_t>> read_ptz_block(const format::PtzArchive& archive, size_t index);
Result<std::vector<Result<std::vector<uint8_t>>>> read_ptz_blocks(const format::PtzArchive& archive,
                                                                  std::span<const size_t> indices, Executor& executor,
                                                                  BlockCoder& coder);

}  // namespace ptxkit::codec
