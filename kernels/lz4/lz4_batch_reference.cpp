// Items of a batch, one at a time: the framing here, the blocks by the references of the other LZ4 kernels.
#include "kernels/lz4/lz4_batch_reference.hpp"

#include <algorithm>

#include "kernels/lz4/lz4_decompress_reference.hpp"
#include "kernels/lz4/lz4_format.hpp"

namespace ptxkit::kernels {
namespace {

constexpr BatchItem failed(BatchStatus status) { return {status, 0}; }

uint32_t little_endian(std::span<const uint8_t> bytes) {
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | uint32_t{bytes[3]} << 24;
}

// `is_whole`: the block has to fill `dst`.
BatchItem decode(std::span<const uint8_t> block, std::span<uint8_t> dst, bool is_whole) {
  const DecompressedItem item = lz4_decode_block_reference(block, dst);
  if (is_whole && (item.status != Lz4Status::ok || item.size_bytes != dst.size())) {
    return failed(BatchStatus::cannot_decompress);
  }
  if (item.status == Lz4Status::output_overrun) return failed(BatchStatus::output_too_small);
  if (item.status != Lz4Status::ok) return failed(BatchStatus::cannot_decompress);
  return {BatchStatus::ok, item.size_bytes};
}

}  // namespace

BatchItem lz4_batch_decompress_reference(std::span<const uint8_t> src, std::span<uint8_t> dst, BatchFraming framing) {
  if (src.size() > kMaxBatchCodedBytes) return failed(BatchStatus::too_large);
  dst = dst.first(std::min<size_t>(dst.size(), kMaxBatchRawBytes));
  if (has_blocks(framing)) return lz4_batch_framed_reference(src, dst, framing);
  if (framing == BatchFraming::raw) return decode(src, dst, false);
  if (src.size() < 4) return failed(BatchStatus::cannot_decompress);
  const uint32_t raw_bytes = little_endian(src);
  if (raw_bytes > dst.size()) return failed(BatchStatus::output_too_small);
  return decode(src.subspan(4), dst.first(raw_bytes), true);
}

BatchItem lz4_batch_size_reference(std::span<const uint8_t> src, BatchFraming framing) {
  if (src.size() > kMaxBatchCodedBytes) return failed(BatchStatus::too_large);
  if (has_blocks(framing)) return lz4_batch_framed_size_reference(src, framing);
  if (framing == BatchFraming::numcodecs) {
    if (src.size() < 4) return failed(BatchStatus::cannot_decompress);
    return {BatchStatus::ok, little_endian(src)};
  }
  size_t at = 0;
  uint64_t raw_bytes = 0;
  // Adds the bytes that extend a nibble of 15. False if the block ends before they do.
  const auto extend = [&](uint64_t& length) {
    for (uint8_t byte = 255; length >= kNibbleMax && byte == 255; length += byte) {
      if (at == src.size()) return false;
      byte = src[at++];
    }
    return true;
  };
  while (at < src.size()) {
    const uint8_t token = src[at++];
    uint64_t literal_count = token >> 4, match_length = token & kNibbleMax;
    if (!extend(literal_count) || literal_count > src.size() - at) break;
    at += literal_count;
    raw_bytes += literal_count;
    if (raw_bytes > kMaxBatchRawBytes) break;
    if (at == src.size()) return {BatchStatus::ok, raw_bytes};
    if (src.size() - at < 2) break;
    const uint32_t offset = src[at] | src[at + 1] << 8;
    at += 2;
    if (offset == 0 || offset > raw_bytes || !extend(match_length)) break;
    raw_bytes += match_length + kMinMatch;
    if (raw_bytes > kMaxBatchRawBytes) break;
  }
  return failed(BatchStatus::cannot_decompress);
}

}  // namespace ptxkit::kernels
