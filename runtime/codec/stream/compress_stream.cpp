// Compresses raw bytes into one frame. A batch reserves 64 KiB before its raw bytes, so that the first of its linked
// blocks has its history adjacent in memory, which liblz4 handles best.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/blocks/lz4_block.hpp"
#include "runtime/codec/format/background_hash.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/stream/announced_size.hpp"
#include "runtime/codec/stream/batch_plan.hpp"
#include "runtime/codec/stream/pipeline.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/check.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

struct Batch {
  HostMemory storage, output;
  size_t history_bytes = 0;  // directly before `raw`
  Bytes raw;
  std::vector<CompressItem> items;
  std::vector<uint8_t> encoded;           // blocks with sizes and checksums, as the writer sends them
  format::BackgroundHash::Ticket hashed;  // done when `raw` has been hashed
};

class Compressor {
 public:
  Compressor(format::ByteSource& source, format::ByteSink& sink, Backend& backend, const CompressOptions& options,
             Encoder encoder)
      : source_(source),
        sink_(sink),
        backend_(backend),
        options_(options),
        encoder_(encoder),
        block_bytes_(options.header.block_bytes()) {}

  Result<StreamTotals> run() {
    scheduler::Ledger unlimited("memory");
    scheduler::Ledger& memory = options_.limits.memory != nullptr ? *options_.limits.memory : unlimited;
    // At least one block, and no more than the announced content.
    uint64_t preferred = backend_.preferred_batch_bytes(block_bytes_);
    if (const auto& announced = options_.header.content_bytes; announced && *announced < preferred) {
      preferred = *announced + block_bytes_ - 1;
    }
    const BatchPlan plan = plan_batches(preferred, block_bytes_, {kFixedBytes, buffer_bytes(block_bytes_)}, memory,
                                        options_.limits.prefetch);
    if (plan.depth == 0) return no_room_for_a_block(block_bytes_, plan.batch_bytes, memory);
    batch_bytes_ = plan.block_count * block_bytes_;
    std::vector<uint8_t> bytes;
    format::append_frame_header(options_.header, bytes);
    if (auto sent = send(bytes); !sent) return tl::unexpected(sent.error());
    auto done = run_pipeline<Batch>(
        PipelineLimits{memory, plan.batch_bytes, plan.depth, options_.limits.stop, 0, options_.limits.trace},
        [this](Batch& batch) { return read(batch); },
        [this](Batch& batch) { return backend_.begin_compress(batch.items, encoder_); },
        [this](Batch& batch) { return write(batch); });
    if (!done) return tl::unexpected(done.error());
    bytes.clear();
    format::append_frame_end(options_.header, hash_.value(), bytes);
    if (auto sent = send(bytes); !sent) return tl::unexpected(sent.error());
    totals_.frame_count = 1;
    return totals_;
  }

 private:
  // For each block: raw bytes, output, encoded form with size and checksum, and the item.
  static uint64_t buffer_bytes(uint64_t block_bytes) { return 3 * block_bytes + 8 + sizeof(CompressItem); }
  static constexpr uint64_t kFixedBytes = format::kHistoryBytes;

  Result<bool> read(Batch& batch) {
    constexpr size_t kRoom = format::kHistoryBytes;
    // A stream that ends in its first batch allocates no second one.
    if (has_ended_) return false;
    batch.hashed.wait();
    // If a call below fails, nothing of this batch must be written.
    batch.items.clear();
    batch.raw = {};
    if (const auto& announced = options_.header.content_bytes; announced && read_bytes_ == *announced) return at_end();
    if (batch.items.capacity() == 0) {
      auto storage = backend_.host_memory(kRoom + batch_bytes_), output = backend_.host_memory(batch_bytes_);
      if (!storage) return tl::unexpected(storage.error());
      if (!output) return tl::unexpected(output.error());
      batch.storage = std::move(*storage);
      batch.output = std::move(*output);
      // Reserves all at once: a growing vector would need twice the memory.
      batch.items.reserve(batch_bytes_ / block_bytes_);
      batch.encoded.reserve(batch_bytes_ + 8 * (batch_bytes_ / block_bytes_));
    }
    uint8_t* const raw = batch.storage.bytes().data() + kRoom;
    const auto count = source_.read(MutableBytes(raw, batch_bytes_));
    if (!count) return tl::unexpected(count.error());
    has_ended_ = *count < batch_bytes_;
    read_bytes_ += *count;
    if (auto same = check_announced(options_.header.content_bytes, read_bytes_, has_ended_, source_.name()); !same)
      return tl::unexpected(same.error());
    if (*count == 0) return false;
    batch.raw = Bytes(raw, *count);
    if (options_.header.content_checksum) batch.hashed = hash_.update(batch.raw);
    batch.history_bytes = 0;
    if (!options_.header.independent_blocks) {
      batch.history_bytes = history_.size();
      if (!history_.empty()) std::memcpy(raw - history_.size(), history_.data(), history_.size());
      const Bytes all(raw - batch.history_bytes, batch.history_bytes + *count);
      const Bytes tail = all.last(std::min<size_t>(all.size(), kRoom));
      history_.assign(tail.begin(), tail.end());
    }
    split(batch);
    return true;
  }

  // All announced bytes have been read: fails if the input holds more.
  Result<bool> at_end() {
    uint8_t more;
    const auto count = source_.read(MutableBytes(&more, 1));
    if (!count) return tl::unexpected(count.error());
    read_bytes_ += *count;
    if (auto same = check_announced(options_.header.content_bytes, read_bytes_, true, source_.name()); !same)
      return tl::unexpected(same.error());
    return false;
  }

  void split(Batch& batch) const {
    for (size_t begin = 0; begin < batch.raw.size(); begin += block_bytes_) {
      CompressItem item;
      item.raw = batch.raw.subspan(begin, std::min<size_t>(block_bytes_, batch.raw.size() - begin));
      item.output = batch.output.bytes().subspan(begin, item.raw.size());
      if (!options_.header.independent_blocks) {
        const size_t history_bytes = std::min<size_t>(batch.history_bytes + begin, format::kHistoryBytes);
        item.history = Bytes(item.raw.data() - history_bytes, history_bytes);
      }
      batch.items.push_back(item);
    }
  }

  Result<void> write(Batch& batch) {
    batch.encoded.clear();
    for (const CompressItem& item : batch.items) {
      PTXKIT_CHECK(item.status == ItemStatus::ok, "an encoder refused a block that the stream cut to its limits");
      uint32_t length = item.compressed_bytes;
      bool stored = item.flag == ChunkFlag::incompressible;
      if (item.flag == ChunkFlag::zero) {
        const auto zeros = encode_run(item.raw, item.output);
        stored = !zeros;
        length = zeros.value_or(0);
      }
      format::append_block(options_.header, stored ? item.raw : Bytes(item.output.first(length)), stored,
                           batch.encoded);
    }
    totals_.block_count += batch.items.size();
    totals_.raw_bytes += batch.raw.size();
    return send(batch.encoded);
  }

  Result<void> send(Bytes bytes) {
    totals_.stored_bytes += bytes.size();
    auto written = sink_.write(bytes);
    if (written && options_.progress) options_.progress(totals_.raw_bytes, totals_.stored_bytes);
    return written;
  }

  format::ByteSource& source_;
  format::ByteSink& sink_;
  Backend& backend_;
  const CompressOptions& options_;
  Encoder encoder_;
  size_t block_bytes_;
  size_t batch_bytes_ = 0;
  // Used by the reader:
  uint64_t read_bytes_ = 0;
  bool has_ended_ = false;
  std::vector<uint8_t> history_;
  format::BackgroundHash hash_;
  // Used by the writer:
  StreamTotals totals_;
};

// Linked blocks need the fast encoder, even where the backend's default is another one.
std::optional<Encoder> encoder_asked_for(const CompressOptions& options, const Backend& backend) {
  const bool must_link = !options.encoder && !options.header.independent_blocks;
  return must_link && backend.supports(Operation::compress_fast) ? Encoder::fast : options.encoder;
}

}  // namespace

Result<StreamTotals> compress_stream(format::ByteSource& source, format::ByteSink& sink, Backend& backend,
                                     const CompressOptions& options) {
  if (auto good = format::check_writable(options.header); !good) return tl::unexpected(good.error());
  CodecJob job;
  job.encoder = encoder_asked_for(options, backend);
  job.work = job.encoder.value_or(Encoder::fast) == Encoder::fast ? Work::compress : Work::compress_reproducible;
  job.raw_bytes = options.header.content_bytes;
  job.source = &source;
  Backend& chosen = backend.chosen_for(job);
  const Encoder encoder = job.encoder.value_or(chosen.default_encoder());
  const Operation encode = encoder == Encoder::fast ? Operation::compress_fast : Operation::compress_reproducible;
  if (!chosen.supports(encode)) return chosen.lacks(encode);
  if (!options.header.independent_blocks && encoder != Encoder::fast) {
    return fail("the reproducible encoder has no linked blocks", {}, "use independent blocks or the fast encoder");
  }
  if (!options.header.independent_blocks && !chosen.supports(Operation::compress_linked)) {
    return chosen.lacks(Operation::compress_linked);
  }
  const auto begin = std::chrono::steady_clock::now();
  auto totals = Compressor(source, sink, chosen, options, encoder).run();
  if (!totals) return totals;
  job.raw_bytes = totals->raw_bytes;
  backend.record_time(job, chosen, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  totals->encoder = encoder;
  totals->by = chosen.description();
  return totals;
}

}  // namespace ptxkit::codec
