// Compresses and decompresses whole `.ptz` files on all cores, or by kernels.
#pragma once

#include "runtime/codec/device/block_kernels.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {

struct PtzOptions {
  BlockKernels* kernels = nullptr;           // codes the blocks; null: the CPU does, on `executor`
  MatchSearch search = MatchSearch::chains;  // compress_ptz only
  Progress progress = {};
  // The memory budget bounds blocks and the memory for coding them. A sixteenth of it is for the block table, 16 bytes
  // a block, which is written at the end of the file. `prefetch` counts batches of blocks.
  StreamLimits limits = {};
};

// Codes each block independently, on `executor` or by `options.kernels`; the bytes are the same. Reading, coding and
// writing overlap (pipeline.hpp).
Result<StreamTotals> compress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                  const format::PtzHeader& header, const PtzOptions& options = {});

// Verifies sizes and checksums. An error names the block; the blocks before it have been written.
Result<StreamTotals> decompress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                    const PtzOptions& options = {});

// Decodes one block of a container, even if others are damaged.
Result<std::vector<uint8_t>> read_ptz_block(const format::PtzArchive& archive, size_t index);

}  // namespace ptxkit::codec
