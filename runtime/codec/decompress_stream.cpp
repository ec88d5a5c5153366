// Frames to raw bytes. The reader takes the stream apart into batches of blocks; independent blocks of a batch go to
// the backend together, even across frames; linked blocks go one by one, each seeing the last 64 KiB before it. The
// writer walks the batch in stream order, checks the content and writes.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/batch_plan.hpp"
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

// A batch of empty frames must end too.
constexpr std::size_t kMaxEvents = 1 << 12;

struct Batch {
  std::vector<FrameEvent> events;
  std::vector<std::vector<std::uint8_t>> spare_payloads;
  std::vector<bool> linked;    // of each event
  std::size_t room_bytes = 0;  // what the blocks may decode to
  HostMemory output;           // kHistoryBytes of history, then output_bytes
  std::size_t output_bytes = 0;
  std::vector<DecompressItem> items;
  bool are_results_in_items = false;       // of a batch of independent blocks, until it is written
  std::vector<Bytes> decoded;              // of each event that is a block
  std::vector<ItemStatus> statuses;        // of each event that is a block
  format::BackgroundHash::Ticket checked;  // of decoded
};

class Decompressor {
 public:
  Decompressor(format::ByteSource& source, format::ByteSink& sink, Backend& backend, const DecompressOptions& options)
      : reader_(source), file_(source.name()), sink_(sink), asked_(backend), options_(options) {}

  Result<StreamTotals> run() {
    const auto begun = std::chrono::steady_clock::now();
    scheduler::Ledger unlimited("memory");
    memory_ = options_.limits.memory != nullptr ? options_.limits.memory : &unlimited;
    // The first header says how large blocks are, and so how many batches the budget holds; often how much there is.
    auto first = reader_.next({});
    if (!first) return tl::unexpected(first.error());
    const auto* begin = std::get_if<FrameBegin>(&*first);
    const format::FrameHeader& header = (begin != nullptr ? *begin : frame_).header;
    const std::uint64_t block_bytes = header.block_bytes();
    CodecJob job{.work = Work::decompress, .raw_bytes = header.content_bytes};
    backend_ = &asked_.chosen_for(job);
    first_event_ = std::move(*first);
    const BatchPlan plan = plan_batches(backend_->preferred_batch_bytes(block_bytes), block_bytes, cost_of(block_bytes),
                                        *memory_, options_.limits.prefetch);
    if (plan.depth == 0) return no_room_for_a_block(block_bytes, plan.batch_bytes, *memory_);
    batch_bytes_ = plan.batch_bytes;
    auto done = run_pipeline<Batch>(
        PipelineLimits{*memory_, plan.batch_bytes, plan.depth, options_.limits.stop},
        [this](Batch& batch) { return read(batch); }, [this](Batch& batch) { return work(batch); },
        [this](Batch& batch) { return write(batch); });
    if (!done) return tl::unexpected(done.error());
    job.raw_bytes = totals_.raw_bytes;
    asked_.took(job, *backend_, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    totals_.by = backend_->description();
    return totals_;
  }

 private:
  // What a batch takes for each block: its payload, what it decodes to, and what is known of it.
  static BatchCost cost_of(std::uint64_t block_bytes) {
    return {format::kHistoryBytes, 2 * block_bytes + sizeof(FrameEvent) + sizeof(DecompressItem) + sizeof(Bytes)};
  }

  // How many raw bytes a batch may hold when blocks are so large; less than one block: none fits.
  std::uint64_t room_limit(std::uint64_t block_bytes) const {
    const std::uint64_t preferred = std::max<std::uint64_t>(backend_->preferred_batch_bytes(block_bytes), block_bytes);
    if (memory_->budget_bytes() == scheduler::Ledger::kUnlimited) return preferred;
    const BatchCost cost = cost_of(block_bytes);
    return std::min(preferred, (batch_bytes_ - cost.fixed_bytes) / cost.bytes_per_block * block_bytes);
  }

  Result<FrameEvent> next_event(std::vector<std::uint8_t> reuse) {
    if (first_event_) return *std::exchange(first_event_, std::nullopt);
    return reader_.next(std::move(reuse));
  }

  Result<bool> read(Batch& batch) {
    recycle(batch);
    while (batch.events.size() < kMaxEvents) {
      const std::size_t block_bytes = frame_.header.block_bytes();
      if (batch.room_bytes != 0 && batch.room_bytes + block_bytes > room_limit(block_bytes)) break;
      std::vector<std::uint8_t> reuse;
      if (!batch.spare_payloads.empty()) {
        reuse = std::move(batch.spare_payloads.back());
        batch.spare_payloads.pop_back();
      }
      auto event = next_event(std::move(reuse));
      if (!event) return tl::unexpected(event.error());
      if (std::holds_alternative<format::EndOfInput>(*event)) return !batch.events.empty();
      if (const auto* begin = std::get_if<FrameBegin>(&*event)) {
        // Payloads of larger blocks would hold on to their room.
        if (begin->header.block_bytes() != block_bytes) batch.spare_payloads.clear();
        frame_ = *begin;
        const std::uint64_t needed = frame_.header.block_bytes();
        if (room_limit(needed) < needed) {
          const BatchCost cost = cost_of(needed);
          return no_room_for_a_block(needed, cost.fixed_bytes + cost.bytes_per_block, *memory_);
        }
      }
      if (std::holds_alternative<BlockRead>(*event)) batch.room_bytes += block_bytes;
      batch.linked.push_back(!frame_.header.independent_blocks);
      batch.events.push_back(std::move(*event));
    }
    return true;
  }

  static void recycle(Batch& batch) {
    batch.checked.wait();
    for (FrameEvent& event : batch.events) {
      if (auto* block = std::get_if<BlockRead>(&event)) batch.spare_payloads.push_back(std::move(block->payload));
    }
    batch.events.clear();
    batch.linked.clear();
    batch.room_bytes = 0;
  }

  // A batch of independent blocks is begun; where some are linked, all are decoded now, one after another.
  std::unique_ptr<BegunBatch> work(Batch& batch) {
    constexpr std::size_t kRoom = format::kHistoryBytes;
    if (batch.output.bytes().empty() || batch.output_bytes < batch.room_bytes) {
      batch.output = {};  // first: the old and the new need not fit together
      auto memory = backend_->host_memory(kRoom + batch.room_bytes);
      if (!memory) return finished_batch(tl::unexpected(memory.error()));
      batch.output = std::move(*memory);
      batch.output_bytes = batch.room_bytes;
    }
    batch.decoded.clear();
    batch.statuses.clear();
    std::uint8_t* cursor = batch.output.bytes().data() + kRoom;
    batch.are_results_in_items = std::find(batch.linked.begin(), batch.linked.end(), true) == batch.linked.end();
    if (batch.are_results_in_items) {
      list_independent(batch, 0, batch.events.size(), cursor);
      return backend_->begin_decompress(batch.items);
    }
    return finished_batch(decode_in_turn(batch, cursor));
  }

  Result<void> decode_in_turn(Batch& batch, std::uint8_t* cursor) {
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

  // The blocks among these events as items; `room` goes behind theirs.
  void list_independent(Batch& batch, std::size_t first, std::size_t end, std::uint8_t*& room) {
    batch.items.clear();
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
  }

  Result<void> decode_independent(Batch& batch, std::size_t first, std::size_t end, std::uint8_t*& cursor) {
    list_independent(batch, first, end, cursor);
    if (auto done = backend_->decompress(batch.items); !done) return done;
    take_results(batch, first, end);
    return {};
  }

  static void take_results(Batch& batch, std::size_t first, std::size_t end) {
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
  }

  Result<void> decode_linked(Batch& batch, std::size_t first, std::size_t end, std::uint8_t*& cursor) {
    if (!backend_->supports(Operation::decompress_linked)) return backend_->lacks(Operation::decompress_linked);
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
      } else if (auto done = backend_->decompress({&item, 1}); !done) {
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
    if (batch.are_results_in_items) take_results(batch, 0, batch.events.size());
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
        auto checked = check_.update(raw, block->block_index, block->offset);
        if (!checked) return tl::unexpected(checked.error());
        batch.checked = std::move(*checked);
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

  scheduler::Ledger* memory_ = nullptr;
  std::uint64_t batch_bytes_ = 0;
  // The reader's:
  format::FrameReader reader_;
  std::optional<FrameEvent> first_event_;
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
  Backend& asked_;
  Backend* backend_ = nullptr;  // whom that chose
  const DecompressOptions& options_;
};

}  // namespace

Result<StreamTotals> decompress_stream(format::ByteSource& source, format::ByteSink& sink, Backend& backend,
                                       const DecompressOptions& options) {
  return Decompressor(source, sink, backend, options).run();
}

}  // namespace ptxkit::codec
