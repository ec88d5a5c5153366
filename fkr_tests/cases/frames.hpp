// Whole frames in memory: written by a backend, read by liblz4.
#pragma once

#include <vector>

#include <gtest/gtest.h>
#include <lz4frame.h>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/stream/stream.hpp"

namespace ptxkit::testing {

// `size_id`: 4 to 7 for blocks of 64 KiB to 4 MiB. Returns the frame.
inline Result<std::vector<uint8_t>> compress_frame(codec::Backend& backend, const std::vector<uint8_t>& raw,
                                                   int size_id = 4,
                                                   codec::Encoder encoder = codec::Encoder::reproducible) {
  format::FrameHeader header;
  header.block_size_id = size_id;
  format::MemorySource source(raw, "raw");
  format::MemorySink sink;
  const auto done =
      codec::compress_stream(source, sink, backend, {.header = header, .encoder = encoder, .progress = {}});
  if (!done) return tl::unexpected(done.error());
  return sink.take();
}

inline Result<std::vector<uint8_t>> decompress_frame(codec::Backend& backend, const std::vector<uint8_t>& frame) {
  format::MemorySource source(frame, "frame");
  format::MemorySink sink;
  const auto done = codec::decompress_stream(source, sink, backend);
  if (!done) return tl::unexpected(done.error());
  return sink.take();
}

// liblz4's decoding of one frame that is expected to hold `raw_bytes` bytes. The test fails if liblz4 refuses the
// frame, if the frame does not end, or if bytes follow it.
inline std::vector<uint8_t> decode_with_liblz4(const std::vector<uint8_t>& frame, size_t raw_bytes) {
  LZ4F_dctx* decoder = nullptr;
  EXPECT_FALSE(LZ4F_isError(LZ4F_createDecompressionContext(&decoder, LZ4F_VERSION)));
  std::vector<uint8_t> raw(raw_bytes + 1);  // one byte more, so that content which is too long is noticed
  size_t consumed = 0, produced = 0, hint = 1;
  while (hint != 0) {
    size_t in = frame.size() - consumed, out = raw.size() - produced;
    hint = LZ4F_decompress(decoder, raw.data() + produced, &out, frame.data() + consumed, &in, nullptr);
    if (LZ4F_isError(hint)) {
      ADD_FAILURE() << "liblz4: " << LZ4F_getErrorName(hint);
      break;
    }
    if (in == 0 && out == 0) {
      ADD_FAILURE() << "the frame does not end, or holds more than " << raw_bytes << " bytes";
      break;
    }
    consumed += in;
    produced += out;
  }
  EXPECT_EQ(consumed, frame.size());
  LZ4F_freeDecompressionContext(decoder);
  raw.resize(produced);
  return raw;
}

}  // namespace ptxkit::testing
