#include "runtime/codec/format/lz4_frame.hpp"

#include <cstring>
#include <new>
#include <string>

#define XXH_STATIC_LINKING_ONLY  // the size of XXH32_state_t
#include <xxhash.h>

#include "runtime/codec/format/little_endian.hpp"
#include "support/check.hpp"

namespace ptxkit::format {
Result<void> check_writable(const FrameHeader& header) {
  if (header.legacy) return fail("legacy frames are read, never written", "the frame's header");
  if (header.block_size_id < kSmallestBlockSizeId || header.block_size_id > kLargestBlockSizeId) {
    return fail("expected a block size id of 4 to 7, found " + std::to_string(header.block_size_id),
                "the frame's header", "4 is 64 KiB, 7 is 4 MiB");
  }
  if (header.dictionary_id) return fail("frames with a dictionary are not written", "the frame's header");
  return {};
}

void append_frame_header(const FrameHeader& header, std::vector<uint8_t>& out) {
  PTXKIT_CHECK(!header.legacy, "legacy frames are read, never written");
  PTXKIT_CHECK(header.block_size_id >= kSmallestBlockSizeId && header.block_size_id <= kLargestBlockSizeId,
               "the header can only name block sizes 4 to 7");
  append_little_endian(kFrameMagic, out);
  const size_t descriptor_begin = out.size();
  const int flags = 1 << 6 | header.independent_blocks << 5 | header.block_checksum << 4 |
                    header.content_bytes.has_value() << 3 | header.content_checksum << 2 |
                    static_cast<int>(header.dictionary_id.has_value());
  out.push_back(static_cast<uint8_t>(flags));
  out.push_back(static_cast<uint8_t>(header.block_size_id << 4));
  if (header.content_bytes) append_little_endian(*header.content_bytes, out);
  if (header.dictionary_id) append_little_endian(*header.dictionary_id, out);
  out.push_back(header_hash(Bytes(out).subspan(descriptor_begin)));
}

void append_block(const FrameHeader& header, Bytes payload, bool stored, std::vector<uint8_t>& out) {
  PTXKIT_CHECK(!payload.empty() && payload.size() <= header.block_bytes(), "a block holds 1 to block_bytes() bytes");
  append_little_endian(static_cast<uint32_t>(payload.size()) | (stored ? kStoredBit : 0), out);
  out.insert(out.end(), payload.begin(), payload.end());
  if (header.block_checksum) append_little_endian(block_hash(payload), out);
}

void append_frame_end(const FrameHeader& header, uint32_t content_checksum, std::vector<uint8_t>& out) {
  append_little_endian(uint32_t{0}, out);
  if (header.content_checksum) append_little_endian(content_checksum, out);
}

ContentHash::ContentHash() : state_(XXH32_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  reset();
}

ContentHash::~ContentHash() { XXH32_freeState(static_cast<XXH32_state_t*>(state_)); }

void ContentHash::reset() { XXH32_reset(static_cast<XXH32_state_t*>(state_), 0); }

void ContentHash::update(Bytes bytes) {
  if (!bytes.empty()) XXH32_update(static_cast<XXH32_state_t*>(state_), bytes.data(), bytes.size());
}

uint32_t ContentHash::value() const { return XXH32_digest(static_cast<const XXH32_state_t*>(state_)); }

std::vector<uint8_t> ContentHash::state() const {
  const auto* const first = static_cast<const uint8_t*>(state_);
  return {first, first + sizeof(XXH32_state_t)};
}

void ContentHash::set_state(Bytes state) {
  PTXKIT_CHECK(state.size() == sizeof(XXH32_state_t), "a state comes from state()");
  std::memcpy(state_, state.data(), state.size());
}

uint32_t block_hash(Bytes bytes) { return XXH32(bytes.data(), bytes.size(), 0); }

uint8_t header_hash(Bytes descriptor) { return static_cast<uint8_t>(block_hash(descriptor) >> 8); }

}  // namespace ptxkit::format
