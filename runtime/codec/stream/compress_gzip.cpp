// Compresses into BGZF members. The reader cuts a batch into members, the worker codes them, the writer joins them.
#include <algorithm>

#include "runtime/codec/blocks/block_coder.hpp"
#include "runtime/codec/cpu/deflate_coder.hpp"
#include "runtime/codec/format/gzip_member.hpp"
#include "runtime/codec/stream/announced_size.hpp"
#include "runtime/codec/stream/batch_plan.hpp"
#include "runtime/codec/stream/gzip_stream.hpp"
#include "runtime/codec/stream/pipeline.hpp"

namespace ptxkit::codec {
namespace {

constexpr size_t kMembersPerThread = 32;

struct Batch {
  HostMemory storage;
  std::vector<BlockToEncode> members;
  size_t count = 0;  // of `members` in use
};

class Compressor {
 public:
  Compressor(format::ByteSource& source, format::ByteSink& sink, Executor& executor, BlockCoder& coder,
             const GzipCompressOptions& options)
      : source_(source), sink_(sink), executor_(executor), coder_(coder), options_(options) {}

  Result<StreamTotals> run() {
    scheduler::Ledger unlimited("memory");
    scheduler::Ledger& memory = options_.limits.memory != nullptr ? *options_.limits.memory : unlimited;
    uint64_t wanted = std::max<uint64_t>(kMembersPerThread * executor_.thread_count(),
                                         coder_.batch_blocks(GzipCoding{options_.level}, format::kBgzfRawBytes));
    if (options_.content_bytes) wanted = std::min(wanted, *options_.content_bytes / format::kBgzfRawBytes + 1);
    const auto plan =
        plan_coded_batches({.preferred_count = wanted,
                            .block_bytes = format::kBgzfRawBytes,
                            .each_bytes = format::kBgzfRawBytes + format::kBgzfLargestBytes + sizeof(BlockToEncode),
                            .coding_bytes = deflating_bytes(options_.level) + format::kBgzfLargestBytes,
                            .coded_at_a_time = coder_.blocks_in_host_memory(),
                            .fixed_bytes = 0},
                           memory, options_.limits.prefetch);
    if (!plan) return tl::unexpected(plan.error());
    batch_bytes_ = plan->block_count * format::kBgzfRawBytes;
    const PipelineLimits limits{
        memory, plan->batch_bytes, plan->depth, options_.limits.stop, plan->fixed_bytes, options_.limits.trace};
    auto done = run_pipeline<Batch>(
        limits, [this](Batch& batch) { return read(batch); },
        [this](Batch& batch) {
          return finished_batch(coder_.encode(GzipCoding{options_.level}, std::span(batch.members).first(batch.count)));
        },
        [this](Batch& batch) { return write(batch); });
    if (!done) return tl::unexpected(done.error());
    std::vector<uint8_t> end;
    format::append_bgzf_end(end);
    ++totals_.frame_count;
    if (auto sent = send(end); !sent) return tl::unexpected(sent.error());
    totals_.by = coder_.description();
    if (!coder_.may_use_device()) totals_.by += ", " + libdeflate_name();
    return totals_;
  }

 private:
  Result<bool> read(Batch& batch) {
    batch.count = 0;
    if (has_ended_) return false;
    if (batch.storage.bytes().empty()) batch.storage = pageable_memory(batch_bytes_);
    const auto count = source_.read(batch.storage.bytes());
    if (!count) return tl::unexpected(count.error());
    read_bytes_ += *count;
    has_ended_ = *count < batch_bytes_;
    if (auto same = check_announced(options_.content_bytes, read_bytes_, has_ended_, source_.name()); !same)
      return tl::unexpected(same.error());
    const Bytes raw = batch.storage.bytes().first(*count);
    for (size_t at = 0; at < raw.size(); at += format::kBgzfRawBytes) {
      if (batch.count == batch.members.size()) batch.members.emplace_back();
      batch.members[batch.count++].raw = raw.subspan(at, std::min(format::kBgzfRawBytes, raw.size() - at));
    }
    return batch.count != 0;
  }

  Result<void> write(Batch& batch) {
    joined_.clear();
    for (const BlockToEncode& member : std::span(batch.members).first(batch.count)) {
      joined_.insert(joined_.end(), member.coded.begin(), member.coded.end());
      totals_.raw_bytes += member.raw.size();
      if (joined_.size() < kJoinedBytes) continue;
      if (auto sent = send(joined_); !sent) return sent;
      joined_.clear();
    }
    totals_.frame_count += batch.count;
    if (auto sent = send(joined_); !sent) return sent;
    if (options_.progress) options_.progress(totals_.raw_bytes, totals_.stored_bytes);
    return {};
  }

  Result<void> send(Bytes bytes) {
    totals_.stored_bytes += bytes.size();
    return bytes.empty() ? Result<void>() : sink_.write(bytes);
  }

  static constexpr size_t kJoinedBytes = 256u << 10;

  format::ByteSource& source_;
  format::ByteSink& sink_;
  Executor& executor_;
  BlockCoder& coder_;
  const GzipCompressOptions& options_;
  size_t batch_bytes_ = 0;
  // Used by the reader:
  uint64_t read_bytes_ = 0;
  bool has_ended_ = false;
  // Used by the writer:
  std::vector<uint8_t> joined_;  // members that are written together
  StreamTotals totals_;
};

}  // namespace

Result<StreamTotals> compress_gzip(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                   BlockCoder& coder, const GzipCompressOptions& options) {
  return Compressor(source, sink, executor, coder, options).run();
}

}  // namespace ptxkit::codec
