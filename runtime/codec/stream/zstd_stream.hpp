// Compresses and decompresses whole Zstandard files on all cores.
//
// A file is one frame, made of ranges that are coded apart (ZstdCoding), so any number of threads gives the same bytes.
// In the seekable format each range is a frame of its own, and a table of them follows.
#pragma once

#include <functional>
#include <optional>

#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

struct ZstdCompressOptions {
  int level = 3;  // of libzstd
  // Recorded in the frame; if it is known, the input must hold exactly as many bytes.
  std::optional<uint64_t> content_bytes = {};
  bool has_checksum = true;
  bool is_seekable = false;
  Progress progress = {};
  StreamLimits limits = {};
};

struct ZstdDecompressOptions {
  // Decodes the frames that say their size and fit a batch, before the ZstdCoder, which decodes all others and those
  // that it refuses; null: the ZstdCoder decodes all.
  BlockCoder* frame_coder = nullptr;
  Progress progress = {};
  StreamLimits limits = {};
  // Called when a frame has been written, with its raw bytes; an error ends the stream.
  std::function<Result<void>(uint64_t raw_bytes)> check_frame = {};
};

Result<StreamTotals> compress_zstd(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                   BlockCoder& coder, const ZstdCompressOptions& options);

// Decompresses all frames of `source`, one after another. Frames that fit a batch are decoded in parallel, longer ones
// by one thread. On an error, the raw bytes before it have been written.
Result<StreamTotals> decompress_zstd(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                     ZstdCoder& coder, const ZstdDecompressOptions& options = {});

}  // namespace ptxkit::codec
