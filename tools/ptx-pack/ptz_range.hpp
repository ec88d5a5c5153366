// A range of a .ptz file through its table: only the blocks that the range touches are read.
#pragma once

#include "runtime/format/byte_stream.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// `input` is a regular file.
Result<void> extract_from_ptz(const InputFile& input, const ByteRange& range, format::ByteSink& sink);

}  // namespace ptxkit::pack
