// Whole `.ptz` files, in and out, all cores at work.
#pragma once

#include "runtime/codec/device/block_kernels.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"

namespace ptxkit::codec {

struct PtzOptions {
  BlockKernels* kernels = nullptr;           // what codes the blocks; null: the executor
  MatchSearch search = MatchSearch::chains;  // of compress_ptz
  Progress progress = {};
  // A budget bounds blocks and what coding them takes; of it a sixteenth is for the table, 16 bytes a block, which only
  // the end of the file has. `prefetch` counts batches of blocks.
  StreamLimits limits = {};
};

// Every block is coded apart: by `executor`, or by kernels where there are any. The bytes are the same. Reading, coding
// and writing overlap (pipeline.hpp).
Result<StreamTotals> compress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                  const format::PtzHeader& header, const PtzOptions& options = {});

// Everything is checked. An error names the block; blocks before it have been written.
Result<StreamTotals> decompress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                    const PtzOptions& options = {});

// One block of a container, whatever became of the others.
Result<std::vector<uint8_t>> read_ptz_block(const format::PtzArchive& archive, size_t index);

}  // namespace ptxkit::codec
