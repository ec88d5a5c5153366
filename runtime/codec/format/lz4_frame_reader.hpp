// Takes an LZ4 stream apart: frames, blocks, skippable frames, legacy frames, one after another, without decompressing.
//
// The reader is a pull parser. next() yields one event and keeps at most one block in memory, so a caller can decode
// blocks one by one, hand many to a GPU, or only list them. It checks everything that concerns the bytes of the stream:
// magic numbers, versions, reserved bits, header checksum, block sizes, block checksums, truncation. What concerns the
// decoded content (its size and checksum) is checked by ContentCheck, to which the decoder shows the raw bytes in
// order.
//
// Every error says in `where` the file, the frame (counted from 0), the block (counted from 0) and the byte offset in
// the stream, and in `what` what was expected and what was found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/codec/format/background_hash.hpp"
#include "runtime/codec/format/lz4_frame.hpp"

namespace ptxkit::format {

// Positions are bytes from the start of the stream.
struct FrameBegin {
  FrameHeader header;
  uint64_t frame_index = 0;
  uint64_t offset = 0;
};
struct BlockRead {
  std::vector<uint8_t> payload;  // an LZ4 block, or raw bytes when `stored`
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

  // The next event. After an error or EndOfInput the reader is finished; calling again repeats EndOfInput.
  // `reuse` is storage for the payload of the next block: pass a spent one back to save an allocation.
  Result<FrameEvent> next(std::vector<uint8_t> reuse = {});

  uint64_t offset() const { return offset_; }
  std::string position(uint64_t offset) const;

 private:
  Result<size_t> read_some(MutableBytes into);
  // So many bytes, if they have been read already; otherwise none.
  Bytes take_ahead(size_t count);
  // Exactly into.size() bytes; fewer is "truncated", naming `what`.
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
  // Bytes that were read with the field before them: a frame may consist of blocks of a byte.
  std::vector<uint8_t> ahead_;
  size_t ahead_begin_ = 0, ahead_end_ = 0;
  uint64_t offset_ = 0;
  uint64_t frame_index_ = 0;
  uint64_t block_index_ = 0;
  bool in_frame_ = false;
  bool finished_ = false;
  FrameHeader header_;
  std::optional<uint32_t> pending_magic_;  // read while looking for the next legacy block
};

// Compares the decoded content of one frame with what its header and its end say.
class ContentCheck {
 public:
  void begin(const FrameBegin& frame, std::string file);
  // The next raw bytes of the frame, which stay as they are until the ticket says so. Fails as soon as there are more
  // than the header announced.
  Result<BackgroundHash::Ticket> update(Bytes raw, uint64_t block_index, uint64_t offset);
  Result<void> end(const FrameEnd& end);

 private:
  FrameBegin frame_;
  std::string file_;
  uint64_t raw_bytes_ = 0;
  BackgroundHash hash_;
};

}  // namespace ptxkit::format
