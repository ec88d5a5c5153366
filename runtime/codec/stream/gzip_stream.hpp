// Compresses whole files to gzip members of 64 KiB (BGZF), and decompresses gzip files of any origin.
#pragma once

#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/stream/stream.hpp"

namespace ptxkit::codec {

struct GzipCompressOptions {
  int level = kUsualDeflateLevel;
  std::optional<uint64_t> content_bytes = {};  // if it is known, the input must hold exactly as many bytes
  Progress progress = {};
  StreamLimits limits = {};
};

struct GzipDecompressOptions {
  // Decodes the members of BGZF before the DeflateCoder, which decodes all others and those that it refuses; null: the
  // DeflateCoder decodes all.
  BlockCoder* member_coder = nullptr;
  Progress progress = {};
  StreamLimits limits = {};
  // Called for bytes behind the last member that are neither one nor zeros, with their place and number; without it
  // they are an error.
  std::function<void(uint64_t offset, uint64_t count)> ignore_garbage = {};
  // Called at the end of a file whose last member is one of BGZF with content: BGZF ends in an empty member, so the
  // file was probably cut behind a member, where gzip files may end.
  std::function<void(uint64_t offset)> note_missing_end = {};
};

// Members are coded in parallel; the bytes depend on level, content and the kind of coder alone.
Result<StreamTotals> compress_gzip(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                   BlockCoder& coder, const GzipCompressOptions& options);

// Decompresses all members of `source`. Those of BGZF are decoded in parallel, others by one thread. Zeros behind the
// last member are ignored, as by gzip. In the totals a frame is a member.
Result<StreamTotals> decompress_gzip(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                     DeflateCoder& coder, const GzipDecompressOptions& options = {});

}  // namespace ptxkit::codec
