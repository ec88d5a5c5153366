// Splits an LZ4 stream into frames, blocks, skippable frames and legacy frames, without decompressing.
//
// The reader is a pull parser. next() returns one event and keeps at most one block in memory, so a caller can decode
// blocks one by one, hand many to a GPU, or only list them. It verifies everything that concerns the bytes of the
// stream: magic numbers, versions, reserved bits, header checksum, block sizes, block checksums, truncation.
// ContentCheck verifies size and checksum of the decoded content; the decoder passes it the raw bytes in order.
//
// Every error says in `where` the file, the frame and the block (both counted from 0) and the byte offset in the
// stream, and in `what` what was expected and what was found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/codec/format/background_hash.hpp"
#include "runtime/codec/format/lz4_frame.hpp"

namespace ptxkit::format {

// Offsets are bytes from the start of the stream.
struct FrameBegin {
  FrameHeader header;
  uint64_t frame_index = 0;
  uint64_t offset = 0;
};
struct BlockRead {
  std::vector<uint8_t> payload;  // an LZ4 block, or raw bytes if `stored`
  bool stored = false;
  uint64_t block_index = 0;
  uint64_t offset = 0;  // of the size field
};
struct FrameEnd {
  std::optional<uint32_t> content_checksum;
  uint64_t block_count = 0;
  uint64_t offset = 0;  // of the end mark; of the first byte after the last block in a legacy frame
};
struct SkippedFrame {
  uint32_t magic = 0;
  uint32_t content_bytes = 0;
  uint64_t offset = 0;
};
struct EndOfInput {
  uint64_t frame_count = 0;  // skippable frames included
};
using FrameEvent = std::variant<FrameBegin, BlockRead, FrameEnd, SkippedFrame, EndOfInput>;

// "FILE, frame F, block B, byte N"
std::string frame_position(const std::string& file, uint64_t frame_index, std::optional<uint64_t> block_index,
                           uint64_t offset);

class FrameReader {
 public:
  explicit FrameReader(ByteSource& source) : source_(source) {}

  // Returns the next event. After an error or EndOfInput every further call returns EndOfInput. `reuse`: a used payload
  // whose capacity the next block takes over, to save an allocation.
  Result<FrameEvent> next(std::vector<uint8_t> reuse = {});

  uint64_t offset() const { return offset_; }
  std::string position(uint64_t offset) const;

 private:
  Result<size_t> read_some(MutableBytes into);
  // The next `count` bytes, if they have been read ahead; otherwise none.
  Bytes take_ahead(size_t count);
  // Reads exactly into.size() bytes. Fewer is the error "truncated", which names `what`.
  Result<void> read_exactly(MutableBytes into, const char* what);
  Result<uint32_t> read_u32(const char* what);
  Result<FrameEvent> begin_frame();
  Result<FrameEvent> begin_lz4_frame(uint64_t frame_offset);
  Result<FrameEvent> skip_frame(uint32_t magic, uint64_t frame_offset);
  Result<FrameEvent> read_block(std::vector<uint8_t> storage);
  Result<FrameEvent> read_legacy_block(std::vector<uint8_t> storage);
  Result<void> read_payload(std::vector<uint8_t>& payload, size_t payload_bytes);
  FrameEvent end_frame(std::optional<uint32_t> content_checksum, uint64_t end_offset);
  tl::unexpected<Error> broken(std::string what, uint64_t offset, std::string todo = {}) const;

  ByteSource& source_;
  // Bytes read ahead, because a frame may consist of blocks of one byte.
  std::vector<uint8_t> ahead_;
  size_t ahead_begin_ = 0, ahead_end_ = 0;
  uint64_t offset_ = 0;
  uint64_t frame_index_ = 0;
  uint64_t block_index_ = 0;
  bool in_frame_ = false;
  bool finished_ = false;
  FrameHeader header_;
  std::optional<uint32_t> pending_magic_;  // found in place of the next legacy block size
};

// Compares the decoded content of a frame with the size in its header and the checksum at its end.
class ContentCheck {
 public:
  void begin(const FrameBegin& frame, std::string file);
  // Takes the next raw bytes of the frame, which must stay unchanged until the ticket has been waited for. Fails as
  // soon as the content is longer than announced.
  Result<BackgroundHash::Ticket> update(Bytes raw, uint64_t block_index, uint64_t offset);
  Result<void> end(const FrameEnd& end);

 private:
  FrameBegin frame_;
  std::string file_;
  uint64_t raw_bytes_ = 0;
  BackgroundHash hash_;
};

}  // namespace ptxkit::format
