// Whole streams: raw bytes to an LZ4 frame and back, through any backend, with bounded memory.
//
// Reading, (de)compressing and writing overlap (pipeline.hpp); the backend gets batches of the size it prefers, or of
// what the memory budget leaves. The content checksum is computed on a thread of its own beside all that
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

namespace ptxkit::codec {

// Called between batches, from the thread that called, with raw and stored bytes so far.
using Progress = std::function<void(uint64_t raw_bytes, uint64_t stored_bytes)>;

struct StreamTotals {
  uint64_t raw_bytes = 0;
  uint64_t stored_bytes = 0;  // of the LZ4 stream, headers included
  uint64_t frame_count = 0;
  uint64_t block_count = 0;
  Encoder encoder = Encoder::fast;  // of compression
  std::string by;                   // Backend::description() of who did it
};

struct StreamLimits {
  // What the buffers of all batches may take; streams may share one, and it must outlive them. Null: as the backend
  // prefers. A budget too small for one block is an error that says how much that is.
  scheduler::Ledger* memory = nullptr;
  unsigned prefetch = 2;  // batches that are ready or under way besides the one that is written
  // Ends the stream between two batches with the error "cancelled"; every byte of the budget is back by then.
  std::stop_token stop = {};
};

struct CompressOptions {
  format::FrameHeader header;  // when it has content_bytes, the input must hold exactly so many
  std::optional<Encoder> encoder =
      Encoder::fast;  // nothing: whatever is usual where it runs, and can link blocks if they are
  Progress progress;
  StreamLimits limits = {};
};

struct DecompressOptions {
  Progress progress;
  StreamLimits limits = {};
};

// One frame holding all of `source`.
Result<StreamTotals> compress_stream(format::ByteSource& source, format::ByteSink& sink, Backend& backend,
                                     const CompressOptions& options);

// All frames of `source`, one after another. Raw bytes that were right before the first error have been written when it
// is returned: the caller decides whether to keep them.
Result<StreamTotals> decompress_stream(format::ByteSource& source, format::ByteSink& sink, Backend& backend,
                                       const DecompressOptions& options = {});

}  // namespace ptxkit::codec
