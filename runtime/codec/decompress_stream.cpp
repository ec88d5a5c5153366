// Frames to raw bytes. The reader takes the stream apart into batches of blocks; independent blocks of a batch go to
// the backend together, even across frames; linked blocks go one by one, each seeing the last 64 KiB before it. The
// writer walks the batch in stream order, checks the content and writes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/pipeline.hpp"
#include "runtime/codec/stream.hpp"
#include "runtime/format/lz4_frame_reader.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using format::BlockRead;
using format::FrameBegin;
using format::FrameEnd;
using format::FrameEvent;

constexpr unsigned kBatchesInFlight = 3;
// A batch of blocks as small as a byte must end too.
constexpr std::size_t kMaxEvents = 1 << 14;

struct Batch {
  std::vector<FrameEvent> events;
  std::vector<std::vector<std::uint8_t>> spare_payloads;
  std::vector<bool> linked;                // of each event
  std::size_t room_bytes = 0;              // what the blocks may decode to
  std::unique_ptr<std::uint8_t[]> output;  // kHistoryBytes of history, then room_bytes
  std::size_t output_bytes = 0;
  std::vector<DecompressItem> items;
  std::vector<Bytes> decoded;        // of each event that is a block
  std::vector<ItemStatus> statuses;  // of each event that is a block
};

class Decompressor {
 public:
  Decompressor(format::ByteSource& source, format::ByteSink& sink, Backend& backend, const DecompressOptions& options)
      : reader_(source), file_(source.name()), sink_(sink), backend_(backend), options_(options) {}

  Result<StreamTotals> run() {
    auto done = run_pipeline<Batch>(
        kBatchesInFlight, [this](Batch& batch) { return read(batch); }, [this](Batch& batch) { return work(batch); },
        [this](Batch& batch) { return write(batch); });
    if (!done) return tl::unexpected(done.error());
    return totals_;
  }

 private:
  Result<bool> read(Batch& batch) {
    recycle(batch);
    while (batch.events.size() < kMaxEvents) {
      const std::size_t block_bytes = frame_.header.block_bytes();
      if (batch.room_bytes != 0 && batch.room_bytes + block_bytes > backend_.preferred_batch_bytes(block_bytes)) break;
      std::vector<std::uint8_t> reuse;
      if (!batch.spare_payloads.empty()) {
        reuse = std::move(batch.spare_payloads.back());
        batch.spare_payloads.pop_back();
      }
      auto event = reader_.next(std::move(reuse));
      if (!event) return tl::unexpected(event.error());
      if (std::holds_alternative<format::EndOfInput>(*event)) return !batch.events.empty();
      if (const auto* begin = std::get_if<FrameBegin>(&*event)) frame_ = *begin;
      if (std::holds_alternative<BlockRead>(*event)) batch.room_bytes += block_bytes;
      batch.linked.push_back(!frame_.header.independent_blocks);
      batch.events.push_back(std::move(*event));
    }
    return true;
  }

  static void recycle(Batch& batch) {
    for (FrameEvent& event : batch.events) {
      if (auto* block = std::get_if<BlockRead>(&event)) batch.spare_payloads.push_back(std::move(block->payload));
    }
    batch.events.clear();
    batch.linked.clear();
    batch.room_bytes = 0;
  }

  Result<void> work(Batch& batch) {
    constexpr std::size_t kRoom = format::kHistoryBytes;
    if (!batch.output || batch.output_bytes < batch.room_bytes) {
      batch.output = std::make_unique_for_overwrite<std::uint8_t[]>(kRoom + batch.room_bytes);
      batch.output_bytes = batch.room_bytes;
    }
    batch.decoded.clear();
    batch.statuses.clear();
    std::uint8_t* cursor = batch.output.get() + kRoom;
    for (std::size_t first = 0; first < batch.events.size();) {
      std::size_t end = first + 1;
      while (end < batch.events.size() && batch.linked[end] == batch.linked[first]) ++end;
      auto done = batch.linked[first] ? decode_linked(batch, first, end, cursor)
                                      : decode_independent(batch, first, end, cursor);
      if (!done) return done;
      first = end;
    }
    return {};
  }

  Result<void> decode_independent(Batch& batch, std::size_t first, std::size_t end, std::uint8_t*& cursor) {
    batch.items.clear();
    std::uint8_t* room = cursor;
    for (std::size_t i = first; i < end; ++i) {
      if (const auto* begin = std::get_if<FrameBegin>(&batch.events[i])) block_bytes_ = begin->header.block_bytes();
      const auto* block = std::get_if<BlockRead>(&batch.events[i]);
      if (block == nullptr || block->stored) continue;
      DecompressItem item;
      item.block = block->payload;
      item.output = MutableBytes(room, block_bytes_);
      room += block_bytes_;
      batch.items.push_back(item);
    }
    if (auto done = backend_.decompress(batch.items); !done) return done;
    auto item = batch.items.begin();
    for (std::size_t i = first; i < end; ++i) {
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
    cursor = room;
    return {};
  }

  Result<void> decode_linked(Batch& batch, std::size_t first, std::size_t end, std::uint8_t*& cursor) {
    if (!backend_.supports(Operation::decompress_linked)) return backend_.lacks(Operation::decompress_linked);
    // What was decoded before this batch moves in front of what will be, so that history is one range of memory. Only a
    // run at the start of a batch can continue a frame; any other begins one.
    if (first == 0 && !history_.empty()) std::memcpy(cursor - history_.size(), history_.data(), history_.size());
    std::size_t history_bytes = history_.size();
    for (std::size_t i = first; i < end; ++i) {
      if (const auto* begin = std::get_if<FrameBegin>(&batch.events[i])) {
        block_bytes_ = begin->header.block_bytes();
        history_bytes = 0;
      }
      const auto* block = std::get_if<BlockRead>(&batch.events[i]);
      if (block == nullptr) continue;
      DecompressItem item;
      item.block = block->payload;
      item.history = Bytes(cursor - history_bytes, history_bytes);
      item.output = MutableBytes(cursor, block_bytes_);
      if (block->stored) {
        std::copy(block->payload.begin(), block->payload.end(), cursor);
        item.raw_bytes = static_cast<std::uint32_t>(block->payload.size());
      } else if (auto done = backend_.decompress({&item, 1}); !done) {
        return done;
      }
      batch.decoded.push_back(Bytes(cursor, item.raw_bytes));
      batch.statuses.push_back(item.status);
      cursor += item.raw_bytes;
      history_bytes = std::min<std::size_t>(history_bytes + item.raw_bytes, format::kHistoryBytes);
    }
    history_.assign(cursor - history_bytes, cursor);
    return {};
  }

  Result<void> write(Batch& batch) {
    std::size_t block_number = 0;
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
        if (auto checked = check_.update(raw, block->block_index, block->offset); !checked) return checked;
        if (auto written = sink_.write(raw); !written) return written;
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
    if (options_.progress) options_.progress(totals_.raw_bytes, totals_.stored_bytes);
    return {};
  }

  // The reader's:
  format::FrameReader reader_;
  FrameBegin frame_;
  // The worker's:
  std::size_t block_bytes_ = 0;
  std::vector<std::uint8_t> history_;
  // The writer's:
  std::string file_;
  FrameBegin written_frame_;
  format::ContentCheck check_;
  StreamTotals totals_;
  format::ByteSink& sink_;
  Backend& backend_;
  const DecompressOptions& options_;
};

}  // namespace

Result<StreamTotals> decompress_stream(format::ByteSource& source, format::ByteSink& sink, Backend& backend,
                                       const DecompressOptions& options) {
  return Decompressor(source, sink, backend, options).run();
}

}  // namespace ptxkit::codec
