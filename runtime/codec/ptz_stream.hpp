// Whole `.ptz` files, in and out, all cores at work.
#pragma once

#include "runtime/backend/kernels/block_kernels.hpp"
#include "runtime/codec/executor.hpp"
#include "runtime/codec/stream.hpp"
#include "runtime/format/ptz.hpp"

namespace ptxkit::codec {

// Every block is coded apart: by `executor`, or by `kernels` where there are any. The bytes are the same. Memory: a
// few blocks for each thread, and what the kernels need.
Result<StreamTotals> compress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                  const format::PtzHeader& header, BlockKernels* kernels = nullptr,
                                  const Progress& progress = {});

// Everything is checked. An error names the block; blocks before it have been written.
Result<StreamTotals> decompress_ptz(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                    BlockKernels* kernels = nullptr, const Progress& progress = {});

// One block of a container that is in memory, whatever became of the others.
Result<std::vector<std::uint8_t>> read_ptz_block(const format::PtzArchive& archive, std::size_t index,
                                                 const std::string& name);

}  // namespace ptxkit::codec
