// A range of a .ptz file through its table: only the blocks that the range touches are read.
#pragma once

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// `input` is a regular file whose size is known. As many blocks at a time as `executor` has threads, or as `memory`
// holds.
Result<void> extract_from_ptz(const InputFile& input, const ByteRange& range, format::ByteSink& sink,
                              codec::Executor& executor, scheduler::Ledger& memory);

}  // namespace ptxkit::pack
