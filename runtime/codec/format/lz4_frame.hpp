// The LZ4 frame format 1.6.x: the writer, and the constants that the reader shares.
//
// A frame is a header (magic, flags, optional content size and dictionary id, one checksum byte), blocks (a 32-bit size
// whose top bit means "stored", the bytes, an optional checksum), an end mark and an optional checksum of the content.
// All integers are little-endian, all checksums are XXH32 with seed 0. The functions append to a byte vector and leave
// writing to the caller, so a batch of blocks takes one write. lz4_frame_reader.hpp reads frames. Source:
// lz4_Frame_format.md of the LZ4 project; docs/format.md says what this project writes and accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/codec/format/byte_stream.hpp"

namespace ptxkit::format {

constexpr uint32_t kFrameMagic = 0x184D2204;
constexpr uint32_t kLegacyMagic = 0x184C2102;
constexpr uint32_t kSkippableMagicFirst = 0x184D2A50;  // ... to 0x184D2A5F
constexpr uint32_t kSkippableMagicCount = 16;
constexpr bool is_skippable(uint32_t magic) {
  return magic >= kSkippableMagicFirst && magic < kSkippableMagicFirst + kSkippableMagicCount;
}
constexpr uint32_t kStoredBit = 0x80000000;
constexpr uint32_t kLegacyBlockBytes = 8u << 20;
constexpr uint32_t kHistoryBytes = 64u << 10;  // the largest offset of a linked block
constexpr uint32_t kMaxFrameHeaderBytes = 19;

// The block sizes that a header can name: 4 is 64 KiB, 5 is 256 KiB, 6 is 1 MiB, 7 is 4 MiB.
constexpr int kSmallestBlockSizeId = 4;
constexpr int kLargestBlockSizeId = 7;
constexpr uint32_t block_bytes_of_id(int id) { return 1u << (8 + 2 * id); }

struct FrameHeader {
  int block_size_id = kLargestBlockSizeId;
  bool independent_blocks = true;
  bool block_checksum = false;
  bool content_checksum = true;
  std::optional<uint64_t> content_bytes = {};
  std::optional<uint32_t> dictionary_id = {};
  bool legacy = false;  // only read: blocks of 8 MiB, no checksums, no end mark

  // The most raw bytes that one block holds.
  uint32_t block_bytes() const { return legacy ? kLegacyBlockBytes : block_bytes_of_id(block_size_id); }
  bool operator==(const FrameHeader&) const = default;
};

// Fails for headers that this project does not write: legacy frames, undefined block sizes, dictionaries.
Result<void> check_writable(const FrameHeader& header);

// Appends a header that check_writable() accepts.
void append_frame_header(const FrameHeader& header, std::vector<uint8_t>& out);

// Appends one block. `payload` is an LZ4 block, or the raw bytes if `stored`; 1 to header.block_bytes() bytes, because
// a size of 0 is the end mark.
void append_block(const FrameHeader& header, Bytes payload, bool stored, std::vector<uint8_t>& out);

// Appends the end mark and, if the header has a content checksum, `content_checksum`: the XXH32 of all raw bytes.
void append_frame_end(const FrameHeader& header, uint32_t content_checksum, std::vector<uint8_t>& out);

// Incremental XXH32 with seed 0.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void reset();
  void update(Bytes bytes);
  uint32_t value() const;

  // The state in between, with which another process of the same program goes on.
  std::vector<uint8_t> state() const;
  void set_state(Bytes state);

 private:
  void* state_;  // XXH32_state_t: keeps xxhash.h out of this header
};

uint32_t block_hash(Bytes bytes);

// The second byte of the XXH32 of the frame descriptor (flags to dictionary id).
uint8_t header_hash(Bytes descriptor);

}  // namespace ptxkit::format
