// Extracts a range of a .ptz file through its table. Reads only the blocks that overlap the range.
#pragma once

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// `input` must be a regular file of known size. Decodes as many blocks at a time as `coder` prefers or `memory` holds.
Result<void> extract_from_ptz(const InputFile& input, const ByteRange& range, format::ByteSink& sink,
                              codec::Executor& executor, codec::BlockCoder& coder, scheduler::Ledger& memory);

}  // namespace ptxkit::pack
