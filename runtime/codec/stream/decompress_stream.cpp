// Decompresses frames to raw bytes. The reader splits the stream into batches of blocks. Independent blocks of a batch
// go to the backend together, even across frames; linked blocks go one by one, each with the last 64 KiB before it as
// history. The writer walks the batch in stream order, verifies checksums and writes.
//
// Batches are planned for the largest block size of the frames so far. A frame with larger blocks ends the pipeline,
// and a new pipeline with larger batches continues; so the budget must hold one block of the largest size, whatever the
// order of frames. A batch is measured by what its blocks may decode to. Short blocks count little, so that even blocks
// of one byte fill a batch.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/format/background_hash.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame.hpp"
#include "runtime/codec/format/lz4_frame_reader.hpp"
#include "runtime/codec/stream/batch_plan.hpp"
#include "runtime/codec/stream/pipeline.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using format::BlockRead;
using format::FrameBegin;
using format::FrameEnd;
using format::FrameEvent;

// Bounds a batch of empty frames.
constexpr size_t kMaxEvents = 1 << 12;
// The highest compression ratio of LZ4: a further length byte stands for at most 255 bytes.
constexpr uint64_t kMostRatio = 255;
constexpr uint64_t kRoomAlignment = 64;
// Pieces shorter than kShortPieceBytes are collected and written together.
constexpr size_t kShortPieceBytes = 2 << 10, kPiecesBytes = 16 << 10;

struct Batch {
  std::vector<FrameEvent> events;
  std::vector<std::vector<uint8_t>> spare_payloads;
  std::vector<bool> linked;  // for each event: whether its frame has linked blocks
  size_t room_bytes = 0;     // what the blocks may decode to
  uint64_t held_bytes = 0;   // room_bytes, payloads (spare ones included) and events
  HostMemory output;         // kHistoryBytes of history, then output_bytes
  size_t output_bytes = 0;
  std::vector<DecompressItem> items;
  bool are_results_in_items = false;       // set for a batch of independent blocks until it is written
  std::vector<Bytes> decoded;              // for each event that is a block
  std::vector<ItemStatus> statuses;        // for each event that is a block
  format::BackgroundHash::Ticket checked;  // done when `decoded` has been hashed
};

class Decompressor {
 public:
  Decompressor(format::ByteSource& source, format::ByteSink& sink, Backend& backend, const DecompressOptions& options)
      : reader_(source), file_(source.name()), sink_(sink), asked_(backend), options_(options) {}

  Result<StreamTotals> run() {
    const auto begun = std::chrono::steady_clock::now();
    scheduler::Ledger unlimited("memory");
    memory_ = options_.limits.memory != nullptr ? options_.limits.memory : &unlimited;
    // The first header gives the block size, which determines how many batches the budget holds, and often the total
    // length.
    auto first = reader_.next({});
    if (!first) return tl::unexpected(first.error());
    CodecJob job{.work = Work::decompress};
    // A skippable frame before the first LZ4 frame has no block size.
    frame_.header.block_size_id = format::kSmallestBlockSizeId;
    if (const auto* begin = std::get_if<FrameBegin>(&*first)) {
      job.raw_bytes = begin->header.content_bytes;
      frame_ = *begin;
    }
    backend_ = &asked_.chosen_for(job);
    kept_event_ = std::move(*first);
    while (kept_event_) {
      if (auto done = run_with_blocks_of(frame_.header.block_bytes()); !done) return tl::unexpected(done.error());
    }
    job.raw_bytes = totals_.raw_bytes;
    asked_.record_time(job, *backend_, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    totals_.by = backend_->description();
    return totals_;
  }

 private:
  // Runs until the end of the input, or until a frame with larger blocks, which is then in kept_event_.
  Result<void> run_with_blocks_of(uint64_t block_bytes) {
    const BatchPlan plan = plan_batches(backend_->preferred_batch_bytes(block_bytes), block_bytes, cost_of(block_bytes),
                                        *memory_, options_.limits.prefetch);
    if (plan.depth == 0) return no_room_for_a_block(block_bytes, plan.batch_bytes, *memory_);
    batch_bytes_ = plan.batch_bytes;
    planned_block_bytes_ = block_bytes;
    is_outgrown_ = false;
    return run_pipeline<Batch>(
        PipelineLimits{*memory_, plan.batch_bytes, plan.depth, options_.limits.stop, 0, options_.limits.trace},
        [this](Batch& batch) { return read(batch); }, [this](Batch& batch) { return work(batch); },
        [this](Batch& batch) { return write(batch); });
  }

  // For each block: its payload, what it decodes to, and its bookkeeping.
  static BatchCost cost_of(uint64_t block_bytes) {
    return {format::kHistoryBytes + kPiecesBytes, 2 * block_bytes + kEventBytes};
  }
  // Bookkeeping of an event, and the allocator's overhead for its payload.
  static constexpr uint64_t kEventBytes = sizeof(FrameEvent) + sizeof(DecompressItem) + sizeof(Bytes) + 64;

  // Room for a decoded block. Consecutive rooms keep the alignment that whole blocks would have.
  static uint64_t room_of(const BlockRead& block, uint64_t block_bytes) {
    const uint64_t most_bytes = block.stored ? block.payload.size() : kMostRatio * block.payload.size();
    return std::min(block_bytes, (most_bytes + kRoomAlignment - 1) / kRoomAlignment * kRoomAlignment);
  }

  // What `batch` would take with the payload of one more block of the current frame, of full size.
  uint64_t bytes_with_payload(const Batch& batch) const {
    const uint64_t block_bytes = frame_.header.block_bytes();
    const uint64_t spare_bytes = batch.spare_payloads.empty() ? 0 : batch.spare_payloads.back().capacity();
    return cost_of(0).fixed_bytes + batch.held_bytes + kEventBytes + block_bytes - std::min(block_bytes, spare_bytes);
  }
  // Whether a block that has been read still belongs to `batch`. Its payload is already counted in held_bytes, its room
  // is not.
  bool fits(const Batch& batch, uint64_t room_bytes) const {
    if (batch.room_bytes == 0) return true;
    return cost_of(0).fixed_bytes + batch.held_bytes + room_bytes <= batch_bytes_ &&
           batch.room_bytes + room_bytes <= backend_->preferred_batch_bytes(frame_.header.block_bytes());
  }

  Result<FrameEvent> next_event(std::vector<uint8_t> reuse) {
    if (kept_event_) return *std::exchange(kept_event_, std::nullopt);
    return reader_.next(std::move(reuse));
  }

  Result<bool> read(Batch& batch) {
    recycle(batch);
    // The next frame belongs to the next pipeline.
    if (is_outgrown_) return false;
    if (bytes_with_payload(batch) + frame_.header.block_bytes() > batch_bytes_) drop_spares(batch);
    while (batch.events.size() < kMaxEvents && (batch.room_bytes == 0 || bytes_with_payload(batch) <= batch_bytes_)) {
      std::vector<uint8_t> reuse;
      if (!batch.spare_payloads.empty()) {
        reuse = std::move(batch.spare_payloads.back());
        batch.spare_payloads.pop_back();
      }
      const uint64_t reused_bytes = reuse.capacity();
      auto event = next_event(std::move(reuse));
      if (!event) return tl::unexpected(event.error());
      if (std::holds_alternative<format::EndOfInput>(*event)) return !batch.events.empty();
      if (const auto* begin = std::get_if<FrameBegin>(&*event)) {
        // Payloads of larger blocks would keep their capacity.
        if (begin->header.block_bytes() != frame_.header.block_bytes()) drop_spares(batch);
        frame_ = *begin;
        if (frame_.header.block_bytes() > planned_block_bytes_) {
          is_outgrown_ = true;
          kept_event_ = std::move(*event);
          return !batch.events.empty();
        }
      }
      if (const auto* block = std::get_if<BlockRead>(&*event)) {
        const uint64_t room_bytes = room_of(*block, frame_.header.block_bytes());
        batch.held_bytes += kEventBytes + block->payload.capacity() - reused_bytes;
        if (!fits(batch, room_bytes)) {
          kept_event_ = std::move(*event);
          break;
        }
        batch.room_bytes += room_bytes;
        batch.held_bytes += room_bytes;
      } else {
        batch.held_bytes -= reused_bytes;
      }
      batch.linked.push_back(!frame_.header.independent_blocks);
      batch.events.push_back(std::move(*event));
    }
    return true;
  }

  static void drop_spares(Batch& batch) {
    for (const auto& spare : batch.spare_payloads) batch.held_bytes -= spare.capacity();
    batch.spare_payloads.clear();
  }

  static void recycle(Batch& batch) {
    batch.checked.wait();
    for (FrameEvent& event : batch.events) {
      if (auto* block = std::get_if<BlockRead>(&event)) batch.spare_payloads.push_back(std::move(block->payload));
    }
    batch.events.clear();
    batch.linked.clear();
    batch.room_bytes = 0;
    batch.held_bytes = 0;
    for (const auto& spare : batch.spare_payloads) batch.held_bytes += spare.capacity();
  }

  // Begins a batch of independent blocks. A batch that has linked blocks is decoded here, one block after another.
  std::unique_ptr<PendingBatch> work(Batch& batch) {
    constexpr size_t kRoom = format::kHistoryBytes;
    if (batch.output.bytes().empty() || batch.output_bytes < batch.room_bytes) {
      batch.output = {};  // first, so that the old and the new memory do not exist at the same time
      auto memory = backend_->host_memory(kRoom + batch.room_bytes);
      if (!memory) return finished_batch(tl::unexpected(memory.error()));
      batch.output = std::move(*memory);
      batch.output_bytes = batch.room_bytes;
    }
    batch.decoded.clear();
    batch.statuses.clear();
    uint8_t* cursor = batch.output.bytes().data() + kRoom;
    batch.are_results_in_items = std::find(batch.linked.begin(), batch.linked.end(), true) == batch.linked.end();
    if (batch.are_results_in_items) {
      list_independent(batch, 0, batch.events.size(), cursor);
      return backend_->begin_decompress(batch.items);
    }
    return finished_batch(decode_in_turn(batch, cursor));
  }

  Result<void> decode_in_turn(Batch& batch, uint8_t* cursor) {
    for (size_t first = 0; first < batch.events.size();) {
      size_t end = first + 1;
      while (end < batch.events.size() && batch.linked[end] == batch.linked[first]) ++end;
      auto done = batch.linked[first] ? decode_linked(batch, first, end, cursor)
                                      : decode_independent(batch, first, end, cursor);
      if (!done) return done;
      first = end;
    }
    return {};
  }

  // Makes items of the blocks among these events, and advances `room` past their outputs.
  void list_independent(Batch& batch, size_t first, size_t end, uint8_t*& room) {
    batch.items.clear();
    for (size_t i = first; i < end; ++i) {
      if (const auto* begin = std::get_if<FrameBegin>(&batch.events[i])) block_bytes_ = begin->header.block_bytes();
      const auto* block = std::get_if<BlockRead>(&batch.events[i]);
      if (block == nullptr || block->stored) continue;
      DecompressItem item;
      item.block = block->payload;
      item.output = MutableBytes(room, room_of(*block, block_bytes_));
      room += item.output.size();
      batch.items.push_back(item);
    }
  }

  Result<void> decode_independent(Batch& batch, size_t first, size_t end, uint8_t*& cursor) {
    list_independent(batch, first, end, cursor);
    if (auto done = backend_->decompress(batch.items); !done) return done;
    take_results(batch, first, end);
    return {};
  }

  static void take_results(Batch& batch, size_t first, size_t end) {
    auto item = batch.items.begin();
    for (size_t i = first; i < end; ++i) {
      const auto* block = std::get_if<BlockRead>(&batch.events[i]);
      if (block == nullptr) continue;
      if (block->stored) {
        batch.decoded.push_back(block->payload);
        batch.statuses.push_back(ItemStatus::ok);
      } else {
        batch.decoded.push_back(item->output.first(item->raw_bytes));
        batch.statuses.push_back(item->status);
        ++item;
      }
    }
  }

  Result<void> decode_linked(Batch& batch, size_t first, size_t end, uint8_t*& cursor) {
    if (!backend_->supports(Operation::decompress_linked)) return backend_->lacks(Operation::decompress_linked);
    // Copies the bytes decoded before this batch in front of the batch's output, so that the history is contiguous.
    // Only a run at the start of a batch can continue a frame; any other run begins one.
    if (first == 0 && !history_.empty()) std::memcpy(cursor - history_.size(), history_.data(), history_.size());
    size_t history_bytes = history_.size();
    for (size_t i = first; i < end; ++i) {
      if (const auto* begin = std::get_if<FrameBegin>(&batch.events[i])) {
        block_bytes_ = begin->header.block_bytes();
        history_bytes = 0;
      }
      const auto* block = std::get_if<BlockRead>(&batch.events[i]);
      if (block == nullptr) continue;
      DecompressItem item;
      item.block = block->payload;
      item.history = Bytes(cursor - history_bytes, history_bytes);
      item.output = MutableBytes(cursor, room_of(*block, block_bytes_));
      if (block->stored) {
        std::copy(block->payload.begin(), block->payload.end(), cursor);
        item.raw_bytes = static_cast<uint32_t>(block->payload.size());
      } else if (auto done = backend_->decompress({&item, 1}); !done) {
        return done;
      }
      batch.decoded.push_back(Bytes(cursor, item.raw_bytes));
      batch.statuses.push_back(item.status);
      cursor += item.raw_bytes;
      history_bytes = std::min<size_t>(history_bytes + item.raw_bytes, format::kHistoryBytes);
    }
    history_.assign(cursor - history_bytes, cursor);
    return {};
  }

  Result<void> write(Batch& batch) {
    // Blocks that precede an error are written, too.
    Result<void> done = write_events(batch);
    Result<void> rest = send_pieces();
    if (done) done = std::move(rest);
    if (done && options_.progress) options_.progress(totals_.raw_bytes, totals_.stored_bytes);
    return done;
  }

  Result<void> send_pieces() {
    Result<void> done = pieces_.empty() ? Result<void>() : sink_.write(pieces_);
    pieces_.clear();
    return done;
  }

  Result<void> send(Bytes raw) {
    if (raw.size() < kShortPieceBytes) {
      pieces_.insert(pieces_.end(), raw.begin(), raw.end());
      return pieces_.size() > kPiecesBytes - kShortPieceBytes ? send_pieces() : Result<void>();
    }
    if (auto done = send_pieces(); !done) return done;
    return sink_.write(raw);
  }

  Result<void> write_events(Batch& batch) {
    if (batch.are_results_in_items) take_results(batch, 0, batch.events.size());
    size_t block_number = 0;
    for (const FrameEvent& event : batch.events) {
      if (const auto* begin = std::get_if<FrameBegin>(&event)) {
        written_frame_ = *begin;
        check_.begin(*begin, file_);
      } else if (const auto* block = std::get_if<BlockRead>(&event)) {
        const Bytes raw = batch.decoded[block_number];
        const ItemStatus status = batch.statuses[block_number];
        ++block_number;
        if (status != ItemStatus::ok) {
          return fail(fmt::format("corrupt block: {}", text(status)),
                      format::frame_position(file_, written_frame_.frame_index, block->block_index, block->offset));
        }
        auto checked = check_.update(raw, block->block_index, block->offset);
        if (!checked) return tl::unexpected(checked.error());
        batch.checked = std::move(*checked);
        if (auto written = send(raw); !written) return written;
        totals_.raw_bytes += raw.size();
        ++totals_.block_count;
        totals_.stored_bytes = block->offset + 4 + block->payload.size();
      } else if (const auto* frame_end = std::get_if<FrameEnd>(&event)) {
        if (auto checked = check_.end(*frame_end); !checked) return checked;
        ++totals_.frame_count;
        totals_.stored_bytes =
            frame_end->offset + (written_frame_.header.legacy ? 0 : 4) + (frame_end->content_checksum ? 4 : 0);
      } else if (const auto* skipped = std::get_if<format::SkippedFrame>(&event)) {
        totals_.stored_bytes = skipped->offset + 8 + skipped->content_bytes;
      }
    }
    return {};
  }

  scheduler::Ledger* memory_ = nullptr;
  uint64_t batch_bytes_ = 0, planned_block_bytes_ = 0;
  // Used by the reader:
  format::FrameReader reader_;
  // The first event; or a block for the next batch; or a frame whose blocks are too large for the current batches.
  std::optional<FrameEvent> kept_event_;
  bool is_outgrown_ = false;
  FrameBegin frame_;
  // Used by the worker:
  size_t block_bytes_ = 0;
  std::vector<uint8_t> history_;
  // Used by the writer:
  std::string file_;
  FrameBegin written_frame_;
  format::ContentCheck check_;
  StreamTotals totals_;
  std::vector<uint8_t> pieces_;  // short pieces, to be written together
  format::ByteSink& sink_;
  Backend& asked_;
  Backend* backend_ = nullptr;  // chosen by asked_
  const DecompressOptions& options_;
};

}  // namespace

Result<StreamTotals> decompress_stream(format::ByteSource& source, format::ByteSink& sink, Backend& backend,
                                       const DecompressOptions& options) {
  return Decompressor(source, sink, backend, options).run();
}

}  // namespace ptxkit::codec
