// The Zstandard frame format (RFC 8878), without the coding of blocks: the header of a frame, a reader that splits a
// stream into frames and blocks, and the table of the seekable format.
//
// A frame is a magic number, a header (flags, window, size of the content), blocks and the low 32 bits of the XXH64 of
// the content. A block has a header of three bytes: bit 0 says that it is the last, bits 1 and 2 its kind, the others
// its size. All integers are little-endian.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/field_reader.hpp"
#include "support/result.hpp"

namespace ptxkit::format {

inline constexpr uint32_t kZstdMagic = 0xFD2FB528;
inline constexpr uint32_t kZstdBlockBytes = 128u << 10;  // the most raw bytes of a block
inline constexpr size_t kZstdBlockHeaderBytes = 3;
inline constexpr size_t kZstdChecksumBytes = 4;
inline constexpr size_t kZstdMostHeaderBytes = 18;
// Larger windows are refused, as by libzstd unless it is told otherwise.
inline constexpr uint64_t kZstdLargestWindowBytes = 128u << 20;

struct ZstdFrameHeader {
  uint64_t window_bytes = 0;  // how far back a match reaches at most
  std::optional<uint64_t> content_bytes = {};
  uint32_t dictionary_id = 0;  // 0: none
  bool has_checksum = true;
  size_t header_bytes = 0;  // read only: magic number included

  // The most raw bytes of a block.
  uint32_t block_bytes() const {
    return window_bytes < kZstdBlockBytes ? static_cast<uint32_t>(window_bytes) : kZstdBlockBytes;
  }
};

// The header with which `bytes` begin; nothing if it is not whole or not one.
std::optional<ZstdFrameHeader> parse_zstd_header(Bytes bytes);
// Appends the header of a frame with a window of 2^window_bits bytes. A content that fits the window is a single
// segment: the window is as large as the content.
void append_zstd_header(unsigned window_bits, std::optional<uint64_t> content_bytes, bool has_checksum,
                        std::vector<uint8_t>& out);
// Appends a block without content that ends a frame.
void append_zstd_end(std::vector<uint8_t>& out);
// Marks the last of `blocks`, which are whole blocks in order, as the last one of its frame.
void mark_last_zstd_block(MutableBytes blocks);
// Takes the mark from the last of the blocks of a frame. False where `blocks` are not whole blocks of which the last
// one alone has the mark.
bool unmark_last_zstd_block(MutableBytes blocks);
// How many blocks there are in `blocks`.
uint64_t count_zstd_blocks(Bytes blocks);

struct ZstdFrameBegin {
  ZstdFrameHeader header;
  uint64_t frame_index = 0;
  uint64_t offset = 0;
};
struct ZstdBlock {
  uint64_t block_index = 0;
  uint64_t offset = 0;      // of its header in the stream
  size_t stored_bytes = 0;  // header included
  uint32_t raw_bound = 0;   // the most raw bytes that it stands for; exact if it is not compressed
  bool is_last = false;
};
struct ZstdFrameEnd {
  uint64_t offset = 0;
};
struct ZstdSkipped {
  uint64_t offset = 0;
  uint64_t content_bytes = 0;
};
struct ZstdEndOfInput {};
using ZstdEvent = std::variant<ZstdFrameBegin, ZstdBlock, ZstdFrameEnd, ZstdSkipped, ZstdEndOfInput>;

// Splits a stream of frames. Checks what concerns their bytes: magic numbers, reserved bits, sizes of blocks,
// truncation. Refuses dictionaries and windows of more than kZstdLargestWindowBytes.
class ZstdFrameReader {
 public:
  explicit ZstdFrameReader(ByteSource& source) : fields_(source) {}

  // The next event. Appends what belongs to it to `bytes`: the header of a frame, a block with its header, the checksum
  // at the end of a frame. The content of skippable frames is discarded.
  Result<ZstdEvent> next(std::vector<uint8_t>& bytes);
  uint64_t offset() const { return fields_.offset(); }

 private:
  Result<ZstdEvent> begin_frame(std::vector<uint8_t>& bytes);
  Result<ZstdEvent> skip_frame(Bytes magic_and_size);
  Result<ZstdEvent> read_block(std::vector<uint8_t>& bytes);
  Result<ZstdEvent> end_frame(std::vector<uint8_t>& bytes);
  Result<void> append(size_t count, const char* what, std::vector<uint8_t>& bytes);
  tl::unexpected<Error> broken(std::string what, uint64_t offset, std::string todo = {}) const;

  FieldReader fields_;
  ZstdFrameHeader header_;
  uint64_t frame_index_ = 0, block_index_ = 0;  // skippable frames count
  enum class At : uint8_t { between, in_frame, after_blocks } at_ = At::between;
};

// What a frame takes of a file, found without decoding it: its header and those of its blocks are read.
struct ZstdExtent {
  uint64_t stored_bytes = 0;
  std::optional<uint64_t> raw_bytes = {};  // as the header states it; 0 of a skippable frame
  bool is_skippable = false;
};
// The extent of the frame that begins at byte `at`, which errors call `frame_index`. Fails where none begins, and where
// it does not end within the file.
Result<ZstdExtent> measure_zstd_frame(const RandomAccess& file, uint64_t at, uint64_t frame_index);

// The seekable format: frames, then a table of them in a skippable frame, which ordinary decoders skip.
struct ZstdSeekEntry {
  uint32_t stored_bytes = 0, raw_bytes = 0;
};
inline constexpr uint64_t kZstdSeekEntryBytes = 8;
inline constexpr uint64_t kZstdMostSeekEntries = 0x8000000;
void append_zstd_seek_table(const std::deque<ZstdSeekEntry>& entries, std::vector<uint8_t>& out);
// The table at the end of `file`; nothing if there is none. Fails if it is damaged or does not fill the file.
Result<std::optional<std::vector<ZstdSeekEntry>>> read_zstd_seek_table(const RandomAccess& file);

}  // namespace ptxkit::format
