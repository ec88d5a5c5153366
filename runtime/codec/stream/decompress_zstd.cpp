// Decompresses Zstandard frames. The reader cuts the stream into parts, the worker decodes them, the writer writes them
// in order. A part is a whole frame, or as many blocks of one as fit a batch: these are decoded one after another, in a
// window that the frame's header states.
//
// Memory is planned for the largest window so far. A frame with a larger one ends the pipeline, and another pipeline
// goes on with it, as with the larger blocks of LZ4 (decompress_stream.cpp).
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "runtime/codec/backend.hpp"
#include "runtime/codec/cpu/zstd_coder.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/lz4_frame_reader.hpp"
#include "runtime/codec/format/zstd_frame.hpp"
#include "runtime/codec/stream/batch_plan.hpp"
#include "runtime/codec/stream/pipeline.hpp"
#include "runtime/codec/stream/stream.hpp"
#include "runtime/codec/stream/zstd_stream.hpp"
#include "runtime/codec/threads/executor.hpp"
#include "runtime/codec/threads/ledger.hpp"
#include "support/result.hpp"

namespace ptxkit::codec {
namespace {

using format::ZstdBlock;
using format::ZstdFrameBegin;

constexpr uint64_t kRoomOfThread = 2u << 20, kLeastRoom = 4u << 20, kSmallestRoom = 2 * format::kZstdBlockBytes;
constexpr uint64_t kDecodersShare = 4;               // of the budget
constexpr uint64_t kUsualFrameBytes = 512u << 10;    // in a seekable file
constexpr uint64_t kLongestFrameOfBatch = 1u << 20;  // a kernel writes the content of a frame with one warp
// Bounds a batch of tiny frames, and the fields that stand beside the blocks.
constexpr size_t kMostParts = 1u << 10, kMostBlocks = 1u << 12;

struct Part {
  uint64_t frame_index = 0, offset = 0;
  bool begins_frame = false, ends_frame = false;
  bool is_small = false;  // the frame says its content, and a batch has room for it; so it should be whole
  uint64_t end_offset = 0;
  size_t stored_begin = 0, stored_end = 0, header_bytes = 0;  // in Batch::stored
  size_t first_block = 0, block_count = 0;                    // in Batch::blocks
  size_t room_bytes = 0;
  ZstdPart coding;
};

struct Batch {
  std::vector<uint8_t> stored;
  std::vector<ZstdBlock> blocks;
  std::vector<Part> parts;
  size_t room_bytes = 0;  // of all parts
  HostMemory room;
};

class Decompressor {
 public:
  Decompressor(format::ByteSource& source, format::ByteSink& sink, Executor& executor, ZstdCoder& coder,
               const ZstdDecompressOptions& options)
      : reader_(source), name_(source.name()), sink_(sink), executor_(executor), coder_(coder), options_(options) {}

  Result<StreamTotals> run() {
    do {
      if (auto done = run_with_window(); !done) return tl::unexpected(done.error());
    } while (waiting_);
    totals_.stored_bytes = reader_.offset();
    const bool may_use_device = frame_coder_ != nullptr && frame_coder_->may_use_device();
    totals_.by = may_use_device ? frame_coder_->description() : coder_.description();
    return totals_;
  }

 private:
  // Runs to the end of the input, or to a frame whose window is larger, which then stands in waiting_.
  Result<void> run_with_window() {
    scheduler::Ledger unlimited("memory");
    scheduler::Ledger& memory = options_.limits.memory != nullptr ? *options_.limits.memory : unlimited;
    const unsigned depth = std::min(options_.limits.prefetch, kMostPrefetch) + 1;
    window_bytes_ = waiting_ ? ZstdCoder::part_decoding_bytes(waiting_->header) : 0;
    const uint64_t fitting = memory.budget_bytes() / kDecodersShare / ZstdCoder::frame_decoding_bytes();
    at_a_time_ = static_cast<unsigned>(std::clamp<uint64_t>(fitting, 1, executor_.thread_count()));
    // Its CPU may decode as many frames at a time as there are threads.
    frame_coder_ = fitting < executor_.thread_count() ? nullptr : options_.frame_coder;
    const uint64_t fixed = window_bytes_ + at_a_time_ * ZstdCoder::frame_decoding_bytes();
    const uint64_t of_threads = std::max<uint64_t>(kLeastRoom, kRoomOfThread * executor_.thread_count());
    uint64_t room = of_threads;
    if (frame_coder_ != nullptr)
      room = std::max(room, kUsualFrameBytes * frame_coder_->batch_blocks(ZstdCoding(), kUsualFrameBytes));
    if (memory.budget_bytes() != scheduler::Ledger::kUnlimited) {
      const uint64_t rest = memory.budget_bytes() - std::min(memory.budget_bytes(), fixed);
      room = std::clamp<uint64_t>((rest / depth - std::min<uint64_t>(rest / depth, kFieldsBytes)) / 2, kSmallestRoom,
                                  room);
    }
    room_bytes_ = room;
    long_frame_room_ = std::min(room, of_threads);
    PipelineLimits limits{memory, 2 * room + kFieldsBytes, depth, options_.limits.stop, fixed, options_.limits.trace};
    limits.depth = fixed >= memory.budget_bytes()
                       ? 0
                       : scheduler::max_in_flight(memory.budget_bytes() - fixed, limits.batch_bytes, depth);
    if (limits.depth == 0) {
      return fail(
          fmt::format("a window of {} bytes needs {} bytes of memory, the budget is {}",
                      waiting_ ? waiting_->header.window_bytes : 0, fixed + limits.batch_bytes, memory.budget_bytes()),
          waiting_ ? format::frame_position(name_, waiting_->frame_index, {}, waiting_->offset) : name_,
          "raise the budget");
    }
    is_outgrown_ = false;
    return run_pipeline<Batch>(
        limits, [this](Batch& batch) { return read(batch); },
        [this](Batch& batch) { return finished_batch(decode(batch)); }, [this](Batch& batch) { return write(batch); });
  }

  // Of a batch, beside stored and raw bytes: blocks and parts, the fields of frames, and the block with which `stored`
  // may end.
  static constexpr uint64_t kFieldsBytes =
      kMostBlocks * (sizeof(ZstdBlock) + format::kZstdBlockHeaderBytes) +
      kMostParts * (sizeof(Part) + format::kZstdMostHeaderBytes + format::kZstdChecksumBytes) + format::kZstdBlockBytes;

  static bool has_room(const Batch& batch, uint64_t room, uint64_t of) {
    return batch.room_bytes + room <= of && batch.stored.size() + room <= of;
  }

  // Whether another block of the current frame belongs to this batch.
  bool takes_block(const Batch& batch) const {
    const uint64_t block_bytes = frame_->header.block_bytes();
    if (batch.blocks.size() == kMostBlocks) return false;
    if (batch.parts.back().is_small) return batch.stored.size() + block_bytes <= room_bytes_ + kFieldsBytes;
    return batch.blocks.empty() || has_room(batch, block_bytes, long_frame_room_);
  }

  void begin_part(Batch& batch) {
    Part& part = batch.parts.emplace_back();
    part.frame_index = frame_->frame_index;
    part.offset = frame_->offset;
    part.stored_begin = part.stored_end = batch.stored.size();
    part.first_block = batch.blocks.size();
  }

  // Puts the frame of waiting_, whose header is header_, into the batch. False if it belongs to the next batch.
  bool begin_frame(Batch& batch) {
    const std::optional<uint64_t> content = waiting_->header.content_bytes;
    const bool is_small = content && *content <= room_bytes_;
    if (batch.parts.size() == kMostParts || batch.blocks.size() == kMostBlocks) return false;
    if (is_small && !batch.parts.empty() && !has_room(batch, *content, room_bytes_)) return false;
    if (!is_small && ZstdCoder::part_decoding_bytes(waiting_->header) > window_bytes_) {
      is_outgrown_ = true;
      return false;
    }
    frame_ = std::exchange(waiting_, std::nullopt);
    is_in_frame_ = true;
    has_blocks_ended_ = false;
    begin_part(batch);
    Part& part = batch.parts.back();
    part.begins_frame = true;
    part.is_small = is_small;
    if (is_small) add_room(batch, *content);
    part.header_bytes = header_.size();
    batch.stored.insert(batch.stored.end(), header_.begin(), header_.end());
    part.stored_end = batch.stored.size();
    return true;
  }

  static void add_room(Batch& batch, uint64_t bytes) {
    batch.parts.back().room_bytes += bytes;
    batch.room_bytes += bytes;
  }

  Result<bool> read(Batch& batch) {
    batch.stored.clear();
    batch.blocks.clear();
    batch.parts.clear();
    batch.room_bytes = 0;
    if (is_outgrown_) return false;  // the frame is the next pipeline's
    if (batch.stored.capacity() == 0) batch.stored.reserve(room_bytes_ + kFieldsBytes);
    if (is_in_frame_) begin_part(batch);
    while (true) {
      if (!is_in_frame_) {
        if (!waiting_) {
          header_.clear();
          auto event = reader_.next(header_);
          if (!event) return tl::unexpected(event.error());
          if (std::holds_alternative<format::ZstdEndOfInput>(*event)) return !batch.parts.empty();
          if (const auto* begin = std::get_if<ZstdFrameBegin>(&*event)) waiting_ = *begin;
        }
        if (waiting_ && !begin_frame(batch)) return !batch.parts.empty();
        continue;
      }
      if (!has_blocks_ended_ && !takes_block(batch)) return true;
      if (auto read = read_into_part(batch); !read) return tl::unexpected(read.error());
    }
  }

  // Reads a block, or the end of the frame.
  Result<void> read_into_part(Batch& batch) {
    auto event = reader_.next(batch.stored);
    Part& part = batch.parts.back();
    if (!event) {
      batch.stored.resize(part.stored_end);  // what precedes the error in the frame is decoded
      return tl::unexpected(event.error());
    }
    part.stored_end = batch.stored.size();
    part.end_offset = reader_.offset();
    if (const auto* block = std::get_if<ZstdBlock>(&*event)) {
      batch.blocks.push_back(*block);
      ++part.block_count;
      if (!part.is_small) add_room(batch, block->raw_bound);
      has_blocks_ended_ = block->is_last;
    } else {
      part.ends_frame = true;
      is_in_frame_ = false;
    }
    return {};
  }

  Result<void> decode(Batch& batch) {
    if (batch.room.bytes().size() < batch.room_bytes) {
      batch.room = {};
      batch.room =
          pageable_memory(std::max<size_t>(batch.room_bytes, std::min<size_t>(room_bytes_, 2 * batch.room_bytes)));
    }
    std::vector<ZstdPart*> whole, sized;
    size_t at = 0;
    for (Part& part : batch.parts) {
      part.coding = {.stored = Bytes(batch.stored).subspan(part.stored_begin, part.stored_end - part.stored_begin),
                     .header_bytes = part.header_bytes,
                     .blocks = std::span(batch.blocks).subspan(part.first_block, part.block_count),
                     .room = batch.room.bytes().subspan(at, part.room_bytes)};
      at += part.room_bytes;
      if (!part.begins_frame || !part.ends_frame) continue;
      const bool is_for_batch = part.is_small && part.room_bytes != 0 && part.room_bytes <= kLongestFrameOfBatch;
      (frame_coder_ != nullptr && is_for_batch ? sized : whole).push_back(&part.coding);
    }
    if (!sized.empty()) {
      std::vector<BlockToDecode> frames;
      for (const ZstdPart* part : sized) frames.push_back({part->stored, part->room});
      if (auto done = frame_coder_->decode(ZstdCoding(), frames); !done) return done;
      for (size_t i = 0; i < frames.size(); ++i) {
        if (frames[i].good) {
          sized[i]->raw_bytes = frames[i].raw.size();
        } else {
          whole.push_back(sized[i]);
        }
      }
    }
    coder_.decode_frames(whole, at_a_time_);
    for (Part& part : batch.parts) {
      if (part.begins_frame && part.ends_frame) continue;
      coder_.decode_next(part.coding);
    }
    return {};
  }

  // What lies side by side in memory is written together, since a frame may have few bytes.
  Result<void> write(Batch& batch) {
    Bytes pending;
    const auto send_pending = [&] {
      return pending.empty() ? Result<void>() : sink_.write(std::exchange(pending, {}));
    };
    for (const Part& part : batch.parts) {
      const ZstdPart& coding = part.coding;
      const Bytes raw = coding.room.first(coding.raw_bytes);
      if (pending.data() + pending.size() != raw.data()) {
        if (auto done = send_pending(); !done) return done;
        pending = raw;
      } else {
        pending = Bytes(pending.data(), pending.size() + raw.size());
      }
      totals_.raw_bytes += coding.raw_bytes;
      totals_.block_count += part.block_count;
      frame_raw_bytes_ = (part.begins_frame ? 0 : frame_raw_bytes_) + coding.raw_bytes;
      if (coding.fault != nullptr) {
        if (auto done = send_pending(); !done) return done;
        return failed(part);
      }
      if (part.ends_frame) {
        if (options_.check_frame) {
          if (auto done = send_pending(); !done) return done;
          if (auto good = options_.check_frame(frame_raw_bytes_); !good) return good;
        }
        ++totals_.frame_count;
      }
      totals_.stored_bytes = part.end_offset;
    }
    if (auto done = send_pending(); !done) return done;
    if (options_.progress) options_.progress(totals_.raw_bytes, totals_.stored_bytes);
    return {};
  }

  tl::unexpected<Error> failed(const Part& part) const {
    const ZstdBlock* const block = part.coding.bad_block;
    Error error{fmt::format("{}: {}", block != nullptr ? "corrupt block" : "corrupt frame", part.coding.fault),
                format::frame_position(name_, part.frame_index,
                                       block != nullptr ? std::optional(block->block_index) : std::nullopt,
                                       block != nullptr ? block->offset : part.offset),
                {}};
    if (part.coding.is_bad_checksum)
      error = {"checksum mismatch of the content", std::move(error.where), {}, ErrorKind::bad_checksum};
    return tl::unexpected(std::move(error));
  }

  uint64_t window_bytes_ = 0, room_bytes_ = 0;
  uint64_t long_frame_room_ = 0;  // of the blocks of a frame that does not fit a batch, or does not say its size
  BlockCoder* frame_coder_ = nullptr;
  unsigned at_a_time_ = 1;  // frames that are decoded in parallel
  // Used by the reader:
  format::ZstdFrameReader reader_;
  std::vector<uint8_t> header_;            // of the frame in waiting_
  std::optional<ZstdFrameBegin> waiting_;  // found, but not yet in a batch
  std::optional<ZstdFrameBegin> frame_;    // the current one
  bool is_in_frame_ = false, has_blocks_ended_ = false, is_outgrown_ = false;
  // Used by the writer:
  std::string name_;
  uint64_t frame_raw_bytes_ = 0;  // of the current frame so far
  StreamTotals totals_;
  format::ByteSink& sink_;
  Executor& executor_;
  ZstdCoder& coder_;
  const ZstdDecompressOptions& options_;
};

}  // namespace

Result<StreamTotals> decompress_zstd(format::ByteSource& source, format::ByteSink& sink, Executor& executor,
                                     ZstdCoder& coder, const ZstdDecompressOptions& options) {
  return Decompressor(source, sink, executor, coder, options).run();
}

}  // namespace ptxkit::codec
