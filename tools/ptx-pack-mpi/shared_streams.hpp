// Compresses one file into one by all ranks of a job, and back. The work is cut into rounds of whole blocks; in each
// round a rank takes consecutive blocks, a prefix sum of the sizes says where its bytes go, and it writes them there.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_codec.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "support/result.hpp"
#include "tools/ptx-pack-mpi/job.hpp"
#include "tools/ptx-pack-mpi/shared_file.hpp"

namespace ptxkit::pack {

// Raw bytes of a rank in a round, at most; a block at least.
constexpr uint64_t kRankBytes = 32u << 20;

// What a rank codes with. One of the two coders is there, by the format of the file.
struct Coders {
  codec::Executor& executor;
  codec::Backend* lz4 = nullptr;
  codec::BlockCoder* blocks = nullptr;
  codec::StreamLimits limits = {};
};

struct SharedTotals {
  uint64_t raw_bytes = 0, stored_bytes = 0, block_count = 0;
};

// The blocks [begin, end) of `count` that a rank takes.
struct Part {
  uint64_t begin = 0, end = 0;
  uint64_t count() const { return end - begin; }
};
Part part_of(const Job& job, uint64_t count);

struct CompressJob {
  format::FrameHeader header;  // of LZ4
  codec::Encoder encoder = codec::Encoder::fast;
  bool has_content_size = true;
  format::PtzHeader ptz;  // of .ptz
  codec::MatchSearch search = codec::MatchSearch::chains;
};

// The bytes are those that codec::compress_stream or codec::compress_ptz gives with the same encoder.
Result<SharedTotals> compress_shared(const Job& job, const format::DescriptorFile& input, SharedFile& output,
                                     const Coders& coders, const CompressJob& what);

// Without `output` everything is checked and nothing written.
Result<SharedTotals> decompress_shared(const Job& job, const format::DescriptorFile& input, SharedFile* output,
                                       const Coders& coders);

}  // namespace ptxkit::pack
