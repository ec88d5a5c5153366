#include "kernels/zstd/zstd_reference.hpp"

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kernels/entropy/little_endian.hpp"
#include "kernels/zstd/zstd_choose_reference.hpp"
#include "kernels/zstd/zstd_literals_reference.hpp"

namespace ptxkit::kernels {
namespace {

using Bytes = std::vector<uint8_t>;

void append(Bytes& to, std::span<const uint8_t> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

void append_u32(Bytes& to, uint32_t value) {
  to.resize(to.size() + 4);
  write_u32(to.data() + to.size() - 4, value);
}

Bytes block_header(ZstdBlockType type, uint32_t size, bool is_last) {
  const uint32_t header = uint32_t{is_last} | static_cast<uint32_t>(type) << 1 | size << 3;
  return {static_cast<uint8_t>(header), static_cast<uint8_t>(header >> 8), static_cast<uint8_t>(header >> 16)};
}

Bytes frame_header(uint64_t size, bool with_checksum) {
  Bytes header;
  append_u32(header, kZstdMagic);
  const bool is_single = size <= kZstdWindowBytes;
  const uint32_t size_format = size < 256 && is_single ? 0 : size < 65536 + 256 ? 1 : size >> 32 == 0 ? 2 : 3;
  header.push_back(static_cast<uint8_t>(size_format << 6 | uint32_t{is_single} << 5 | uint32_t{with_checksum} << 2));
  if (!is_single) header.push_back(kZstdWindowDescriptor);
  const uint64_t stored = size_format == 1 ? size - 256 : size;
  for (uint32_t byte = 0; byte < 1u << size_format; ++byte) header.push_back(static_cast<uint8_t>(stored >> 8 * byte));
  return header;
}

}  // namespace

std::vector<uint8_t> zstd_block_reference(std::span<const uint8_t> src, const Lz4CompressVariant& variant,
                                          bool is_last) {
  const auto size = static_cast<uint32_t>(src.size());
  if (std::ranges::all_of(src, [&](uint8_t byte) { return byte == src[0]; })) {
    Bytes block = block_header(ZstdBlockType::rle, size, is_last);
    block.push_back(src[0]);
    return block;
  }
  const auto parts = zstd_choose_reference(src, lz4_parse_reference(src, variant));
  const Bytes packed = zstd_pack(parts.sequences);
  Bytes content(zstd_literals_bound(parts.literals.size()));
  content.resize(zstd_literals_reference(parts.literals, content).size_bytes);
  Bytes sequences(zstd_sequences_bound(packed.size()));
  append(content, std::span(sequences).first(zstd_sequences_reference(packed, sequences).size_bytes));
  const bool is_smaller = content.size() < src.size();
  Bytes block = is_smaller ? block_header(ZstdBlockType::compressed, static_cast<uint32_t>(content.size()), is_last)
                           : block_header(ZstdBlockType::raw, size, is_last);
  append(block, is_smaller ? std::span<const uint8_t>(content) : src);
  return block;
}

std::vector<uint8_t> zstd_frame_reference(std::span<const uint8_t> src, const Lz4CompressVariant& variant,
                                          bool with_checksum) {
  Bytes frame = frame_header(src.size(), with_checksum);
  if (src.empty()) append(frame, block_header(ZstdBlockType::raw, 0, true));
  for (size_t at = 0; at < src.size(); at += kZstdBlockBytes) {
    const size_t size = std::min<size_t>(src.size() - at, kZstdBlockBytes);
    append(frame, zstd_block_reference(src.subspan(at, size), variant, at + size == src.size()));
  }
  if (with_checksum) append_u32(frame, static_cast<uint32_t>(XXH64(src.data(), src.size(), 0)));
  return frame;
}

}  // namespace ptxkit::kernels
