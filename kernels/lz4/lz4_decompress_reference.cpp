// The LZ4 block decoder. Every length is checked against the remaining input and output before any byte is copied. The
// checks are made in the order of the fields in the block, so that a malformed block has exactly one status.
//
// The format's rules for the end of a block (five literals, no match start in the last twelve bytes) bind encoders
// only. This decoder accepts blocks that violate them, provided that the last sequence has no match. It accepts
// everything that liblz4 accepts, with the same output, except offset 0, which liblz4 1.9.4 accepts against the format.
#include "kernels/lz4/lz4_decompress_reference.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {
namespace {

// Copies `length` bytes that start `offset` bytes back. With offset < length the match reads its own output, so it is
// copied in pieces that double: after n bytes of the period, 2n bytes are available.
void copy_match(uint8_t* to, uint32_t offset, uint32_t length) {
  const uint8_t* from = to - offset;
  uint32_t piece = offset;
  while (length > piece) {
    std::memcpy(to, from, piece);
    to += piece;
    length -= piece;
    piece *= 2;
  }
  std::memcpy(to, from, length);
}

class Decoder {
 public:
  Decoder(std::span<const uint8_t> src, std::span<uint8_t> dst, uint32_t history_bytes)
      : src_(src), dst_(dst), op_(history_bytes) {}

  Lz4Status decode() {
    while (true) {
      if (ip_ >= src_.size()) return Lz4Status::input_overrun;
      const uint32_t token = src_[ip_++];
      uint32_t literal_count = token >> 4;
      if (!read_extension(literal_count)) return Lz4Status::input_overrun;
      if (literal_count > src_.size() - ip_) return Lz4Status::input_overrun;
      if (literal_count > dst_.size() - op_) return Lz4Status::output_overrun;
      if (literal_count != 0) std::memcpy(dst_.data() + op_, src_.data() + ip_, literal_count);
      ip_ += literal_count;
      op_ += literal_count;
      if (ip_ == src_.size()) return Lz4Status::ok;

      if (src_.size() - ip_ < 2) return Lz4Status::input_overrun;
      const uint32_t offset = src_[ip_] | src_[ip_ + 1] << 8;
      ip_ += 2;
      if (offset == 0) return Lz4Status::offset_zero;
      if (offset > op_) return Lz4Status::offset_out_of_range;
      uint32_t match_length = token & kNibbleMax;
      if (!read_extension(match_length)) return Lz4Status::input_overrun;
      match_length += kMinMatch;
      if (match_length > dst_.size() - op_) return Lz4Status::output_overrun;
      copy_match(dst_.data() + op_, offset, match_length);
      op_ += match_length;
    }
  }

  uint32_t size_bytes() const { return op_; }

 private:
  // Adds the bytes that extend a nibble of 15. False if the input ends before they do.
  bool read_extension(uint32_t& length) {
    if (length < kNibbleMax) return true;
    while (ip_ < src_.size()) {
      const uint32_t byte = src_[ip_++];
      length = std::min(length + byte, kLongestLength);
      if (byte != 255) return true;
    }
    return false;
  }

  // longer than every block and every room
  static constexpr uint32_t kLongestLength = 1u << 31;

  std::span<const uint8_t> src_;
  std::span<uint8_t> dst_;
  uint32_t ip_ = 0;
  uint32_t op_;
};

}  // namespace

DecompressedItem lz4_decode_block_reference(std::span<const uint8_t> src, std::span<uint8_t> dst,
                                            uint32_t history_bytes) {
  Decoder decoder(src, dst, history_bytes);
  const Lz4Status status = decoder.decode();
  return {status, status == Lz4Status::ok ? decoder.size_bytes() - history_bytes : 0};
}

DecompressedItem lz4_decompress_reference(std::span<const uint8_t> src, std::span<uint8_t> dst) {
  if (src.size() > kMaxBlockBytes || dst.size() > kMaxBlockBytes) return {Lz4Status::item_too_large, 0};
  return lz4_decode_block_reference(src, dst);
}

}  // namespace ptxkit::kernels
