// Compresses and decompresses whole LZ4 streams through any backend, in bounded memory.
//
// Reading, (de)compressing and writing overlap (pipeline.hpp). The backend gets batches of the size that it prefers, or
// of the size that the memory budget allows. A separate thread computes the content checksum
// (format/background_hash.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "runtime/codec/threads/trace.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {

// Called between batches, on the thread of the caller, with the raw and stored bytes so far.
using Progress = std::function<void(uint64_t raw_bytes, uint64_t stored_bytes)>;

struct StreamTotals {
  uint64_t raw_bytes = 0;
  uint64_t stored_bytes = 0;  // of the LZ4 stream, headers included
  uint64_t frame_count = 0;
  uint64_t block_count = 0;
  Encoder encoder = Encoder::fast;  // compression only
  std::string by;                   // Backend::description() of the backend that ran the stream
};

struct StreamLimits {
  // Budget for the buffers of all batches. Streams may share a ledger; it must outlive them. Null: batches are as large
  // as the backend prefers. A budget too small for one block is an error that states the bytes needed.
  scheduler::Ledger* memory = nullptr;
  unsigned prefetch = 2;  // batches that are ready or running, beside the one that is written
  // Ends the stream between two batches with the error "cancelled". All reservations have been given back by then.
  std::stop_token stop = {};
  // Notes what the stages of the stream do, and when; it must outlive the stream. Null: nothing is noted.
  scheduler::Trace* trace = nullptr;
};

struct CompressOptions {
  format::FrameHeader header;  // if it has content_bytes, the input must hold exactly as many
  // Empty: the default of the backend that runs the stream, or `fast` if blocks are linked and it is supported.
  std::optional<Encoder> encoder = Encoder::fast;
  Progress progress;
  StreamLimits limits = {};
};

struct DecompressOptions {
  Progress progress;
  StreamLimits limits = {};
};

// Compresses all of `source` into one frame.
Result<StreamTotals> compress_stream(format::ByteSource& source, format::ByteSink& sink, Backend& backend,
                                     const CompressOptions& options);

// Decompresses all frames of `source`, one after another. On an error, the raw bytes before it have been written to
// `sink`; the caller decides whether to keep them.
Result<StreamTotals> decompress_stream(format::ByteSource& source, format::ByteSink& sink, Backend& backend,
                                       const DecompressOptions& options = {});

}  // namespace ptxkit::codec
