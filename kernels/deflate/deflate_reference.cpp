#include "kernels/deflate/deflate_reference.hpp"

#include "kernels/deflate/checksums_reference.hpp"
#include "kernels/deflate/deflate_block_reference.hpp"
#include "kernels/deflate/deflate_tokens_reference.hpp"

namespace ptxkit::kernels {
namespace {

using Bytes = std::vector<uint8_t>;

void append_little_endian(Bytes& to, uint32_t value, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i) to.push_back(static_cast<uint8_t>(value >> 8 * i));
}

Bytes header_of(DeflateFraming framing, size_t block_bytes) {
  switch (framing) {
    case DeflateFraming::raw:
      return {};
    case DeflateFraming::zlib:
      return {kZlibHeaderByte0, kZlibHeaderByte1};
    case DeflateFraming::gzip:
      return {kGzipMagic0, kGzipMagic1, kDeflateMethod, 0, 0, 0, 0, 0, 0, kGzipUnknownSystem};
    case DeflateFraming::bgzf: {
      Bytes header(kBgzfHeader.begin(), kBgzfHeader.begin() + kBgzfSizeAt);
      append_little_endian(header, static_cast<uint32_t>(kBgzfHeaderBytes + block_bytes + kGzipTrailerBytes - 1), 2);
      return header;
    }
  }
  return {};
}

void append_trailer(Bytes& to, std::span<const uint8_t> src, DeflateFraming framing) {
  if (framing == DeflateFraming::raw) return;
  if (framing == DeflateFraming::zlib) {
    const uint32_t adler = adler32_reference(src);
    for (const uint32_t shift : {24, 16, 8, 0}) to.push_back(static_cast<uint8_t>(adler >> shift));
    return;
  }
  append_little_endian(to, crc32_reference(src), 4);
  append_little_endian(to, static_cast<uint32_t>(src.size()), 4);
}

}  // namespace

std::vector<uint8_t> deflate_reference(std::span<const uint8_t> src, const Lz4CompressVariant& variant,
                                       DeflateFraming framing) {
  const Bytes block = deflate_block_reference(
      src, deflate_tokens_reference(src, lz4_parse_reference(src, variant, kDeflateWindowBytes)));
  Bytes item = header_of(framing, block.size());
  item.insert(item.end(), block.begin(), block.end());
  append_trailer(item, src, framing);
  return item;
}

}  // namespace ptxkit::kernels
