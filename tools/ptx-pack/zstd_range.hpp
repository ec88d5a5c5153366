// Extracts a range of a .zst file through the table of the seekable format. Decodes only the frames that overlap the
// range; of those before it, the headers of frames and blocks are read.
#pragma once

#include "runtime/codec/stream/zstd_stream.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack/files.hpp"
#include "tools/ptx-pack/options.hpp"

namespace ptxkit::pack {

// `input` must be a regular file of known size. Writes nothing and returns false if the file has no table, or if a
// frame before the range does not state its size.
Result<bool> extract_from_zstd(const InputFile& input, const ByteRange& range, format::ByteSink& sink,
                               codec::Executor& executor, codec::ZstdCoder& coder, codec::StreamLimits limits);

}  // namespace ptxkit::pack
