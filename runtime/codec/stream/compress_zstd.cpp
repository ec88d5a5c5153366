// Compresses into one frame, or into the frames of the seekable format. The reader fills a batch with ranges, the
// worker codes them, the writer joins them. Only the reader sees the end of the input: where the size is not known
// before, a block without content ends the frame, so that the bytes do not depend on how ranges fall into batches.
#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/format/background_hash.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/little_endian.hpp"
#include "runtime/codec/format/ptz.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "runtime/codec/stream/announced_size.hpp"
#include "runtime/codec/stream/batch_plan.hpp"
#include "runtime/codec/stream/pipeline.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/stream/zstd_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

constexpr uint64_t kTableShare = 16;  // of the budget, for the table of the seekable format

struct Batch {
  HostMemory storage;
  std::vector<BlockToEncode> ranges;
  std::vector<uint64_t> checksums;          // of ranges that are frames
  format::BackgroundHash64::Ticket hashed;  // done when the raw bytes have been hashed
  bool is_last = false;
};

class Compressor {
 public:
  Compressor(format::ByteSource& source, format::ByteSink& sink, Executor& executor, BlockCoder& coder,
             const ZstdCompressOptions& options)
      : source_(source),
        sink_(sink),
        executor_(executor),
        coder_(coder),
        options_(options),
        range_bytes_(zstd_range_bytes(options.level)),
        window_bits_(zstd_window_bits(options.level, range_bytes_)) {}

  Result<StreamTotals> run() {
    scheduler::Ledger unlimited("memory");
    scheduler::Ledger& memory = options_.limits.memory != nullptr ? *options_.limits.memory : unlimited;
    const bool is_bounded = memory.budget_bytes() != scheduler::Ledger::kUnlimited;
    if (options_.is_seekable && is_bounded) table_bytes_ = memory.budget_bytes() / kTableShare;
    uint64_t wanted = coder_.batch_blocks(ZstdCoding{options_.level}, range_bytes_);
    if (options_.content_bytes) wanted = std::min(wanted, *options_.content_bytes / range_bytes_ + 1);
    const auto plan =
        plan_coded_batches({.preferred_count = wanted,
                            .block_bytes = range_bytes_,
                            .each_bytes = range_bytes_ + zstd_range_bound(range_bytes_) + sizeof(BlockToEncode) + 8,
                            .coding_bytes = zstd_encoding_bytes(options_.level, range_bytes_),
                            .coded_at_a_time = coder_.blocks_in_host_memory(),
                            .fixed_bytes = table_bytes_ == scheduler::Ledger::kUnlimited ? 0 : table_bytes_},
                           memory, options_.limits.prefetch);
    if (!plan) return tl::unexpected(plan.error());
    range_count_ = plan->block_count;
    const PipelineLimits limits{
        memory, plan->batch_bytes, plan->depth, options_.limits.stop, plan->fixed_bytes, options_.limits.trace};
    std::vector<uint8_t> bytes;
    if (!options_.is_seekable) append_header(options_.content_bytes, bytes);
    if (auto sent = send(bytes); !sent) return tl::unexpected(sent.error());
    auto done = run_pipeline<Batch>(
        limits, [this](Batch& batch) { return read(batch); },
        [this](Batch& batch) { return finished_batch(encode(batch)); }, [this](Batch& batch) { return write(batch); });
    if (!done) return tl::unexpected(done.error());
    bytes.clear();
    if (options_.is_seekable) {
      format::append_zstd_seek_table(table_, bytes);
    } else {
      end_frame(bytes);
    }
    if (auto sent = send(bytes); !sent) return tl::unexpected(sent.error());
    totals_.by = coder_.description();
    if (!coder_.may_use_device()) totals_.by += ", " + libzstd_name();
    return totals_;
  }

 private:
  void append_header(std::optional<uint64_t> content_bytes, std::vector<uint8_t>& bytes) const {
    format::append_zstd_header(window_bits_, content_bytes, options_.has_checksum, bytes);
  }

  void end_frame(std::vector<uint8_t>& bytes) {
    if (!has_last_block_) {
      format::append_zstd_end(bytes);
      ++totals_.block_count;
    }
    if (options_.has_checksum) format::append_little_endian(static_cast<uint32_t>(hash_.value()), bytes);
    totals_.frame_count = 1;
  }

  Result<bool> read(Batch& batch) {
    if (has_ended_) return false;
    batch.hashed.wait();
    // If a call below fails, nothing of this batch must be written.
    batch.ranges.clear();
    const size_t batch_bytes = range_count_ * range_bytes_;
    if (batch.storage.bytes().empty()) batch.storage = pageable_memory(batch_bytes);
    const auto count = source_.read(batch.storage.bytes());
    if (!count) return tl::unexpected(count.error());
    read_bytes_ += *count;
    has_ended_ = *count < batch_bytes;
    if (auto same = check_announced(options_.content_bytes, read_bytes_, has_ended_, source_.name()); !same)
      return tl::unexpected(same.error());
    if (*count == 0) return false;
    const Bytes raw = batch.storage.bytes().first(*count);
    if (options_.has_checksum && !options_.is_seekable) batch.hashed = hash_.update(raw);
    for (size_t at = 0; at < raw.size(); at += range_bytes_)
      batch.ranges.push_back({raw.subspan(at, std::min(range_bytes_, raw.size() - at))});
    batch.is_last = read_bytes_ == options_.content_bytes;
    return true;
  }

  Result<void> encode(Batch& batch) {
    if (options_.is_seekable && options_.has_checksum) {
      batch.checksums.resize(batch.ranges.size());
      executor_.for_each(batch.ranges.size(),
                         [&](size_t i, unsigned) { batch.checksums[i] = format::ptz_checksum(batch.ranges[i].raw); });
    }
    return coder_.encode(ZstdCoding{options_.level}, batch.ranges);
  }

  Result<void> write(Batch& batch) {
    for (size_t i = 0; i < batch.ranges.size(); ++i) {
      BlockToEncode& range = batch.ranges[i];
      const bool is_last = options_.is_seekable || (batch.is_last && i + 1 == batch.ranges.size());
      if (is_last) format::mark_last_zstd_block(range.coded);
      has_last_block_ |= is_last;
      const auto sent =
          options_.is_seekable ? send_frame(range, options_.has_checksum ? batch.checksums[i] : 0) : send(range.coded);
      if (!sent) return sent;
      totals_.raw_bytes += range.raw.size();
      totals_.block_count += format::count_zstd_blocks(range.coded);
    }
    if (options_.progress) options_.progress(totals_.raw_bytes, totals_.stored_bytes);
    return {};
  }

  Result<void> send_frame(const BlockToEncode& range, uint64_t checksum) {
    if ((table_.size() + 1) * format::kZstdSeekEntryBytes > table_bytes_ ||
        table_.size() == format::kZstdMostSeekEntries) {
      return fail(fmt::format("the seek table of {} frames takes {} bytes, there is memory for {}", table_.size() + 1,
                              (table_.size() + 1) * format::kZstdSeekEntryBytes, table_bytes_),
                  source_.name(), "raise the budget, or leave the seekable format away");
    }
    std::vector<uint8_t> bytes;
    append_header(range.raw.size(), bytes);
    bytes.insert(bytes.end(), range.coded.begin(), range.coded.end());
    if (options_.has_checksum) format::append_little_endian(static_cast<uint32_t>(checksum), bytes);
    table_.push_back({static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(range.raw.size())});
    ++totals_.frame_count;
    return send(bytes);
  }

  Result<void> send(Bytes bytes) {
    totals_.stored_bytes += bytes.size();
    return sink_.write(bytes);
  }

  format::ByteSource& source_;
  format::ByteSink& sink_;
  Executor& executor_;
  BlockCoder& coder_;
  const ZstdCompressOptions& options_;
  const size_t range_bytes_;
  const unsigned window_bits_;
  size_t range_count_ = 0;  // in a batch
  uint64_t table_bytes_ = scheduler::Ledger::kUnlimited;
  // Used by the reader:
  uint64_t read_bytes_ = 0;
  bool has_ended_ = false;
  format::BackgroundHash64 hash_;
  // Used by the writer:
  bool has_last_block_ = false;
  std::deque<format::ZstdSeekEntry> table_;
  StreamTotals totals_;
};

}  // namespace

Result<StreamTotals> compress_zstd(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                   BlockCoder& coder, const ZstdCompressOptions& options) {
  return Compressor(source, sink, executor, coder, options).run();
}

}  // namespace ptxkit::codec
