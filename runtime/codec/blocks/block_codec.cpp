#include "runtime/codec/blocks/block_codec.hpp"

#include <utility>

#include "kernels/lz77/abi.hpp"
#include "runtime/codec/blocks/bbw_block.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using format::Bytes;
using format::MutableBytes;
using format::PtzCodec;
using kernels::StreamStatus;
using kernels::TransformOutcome;
using ByteVector = std::vector<std::uint8_t>;

constexpr std::size_t kCodingFixedBytes = 512u << 10;  // tables

struct EntropyCoder {
  TransformOutcome (*encode)(Bytes raw, MutableBytes coded);
  TransformOutcome (*decode)(Bytes coded, MutableBytes raw);
};

// Of the streams of an LZ block.
EntropyCoder coder_of(PtzCodec codec) {
  switch (codec) {
    case PtzCodec::lzf:
      return {[](Bytes raw, MutableBytes coded) { return cpu::fse_encode(raw, coded, {}); }, cpu::fse_decode};
    case PtzCodec::deflate_like:
      return {cpu::huffman_encode, cpu::huffman_decode};
    default:
      return {[](Bytes raw, MutableBytes coded) { return cpu::rans_warp_encode(raw, coded, {}); },
              cpu::rans_warp_decode};
  }
}

}  // namespace

std::optional<PtzCodec> block_codec_named(std::string_view name) {
  for (const PtzCodec codec : {PtzCodec::lzr, PtzCodec::lzf, PtzCodec::deflate_like, PtzCodec::bbw}) {
    if (name_of(codec) == name) return codec;
  }
  return std::nullopt;
}

std::string_view name_of(PtzCodec codec) {
  switch (codec) {
    case PtzCodec::lzr:
      return "lzr";
    case PtzCodec::lzf:
      return "lzf";
    case PtzCodec::deflate_like:
      return "deflate-like";
    case PtzCodec::bbw:
      return "bbw";
  }
  PTXKIT_CHECK(false, "a header with another codec is refused");
}

unsigned usual_block_bits(PtzCodec codec) { return codec == PtzCodec::bbw ? format::kPtzMaxBlockBits : 18; }

ByteVector encode_block(PtzCodec codec, Bytes raw, MatchSearch search) {
  if (codec == PtzCodec::bbw) return encode_bbw_block(raw);
  const EntropyCoder coder = coder_of(codec);
  ByteVector lz(kernels::lz_block_bound(raw.size()));
  const auto parse = search == MatchSearch::tables ? cpu::lz77_encode_fast : cpu::lz77_encode;
  lz.resize(parse(raw, lz).size_bytes);
  ByteVector coded(lz.begin(), lz.begin() + kernels::kLzBlockHeaderBytes);
  std::size_t at = kernels::kLzBlockHeaderBytes;
  for (const std::size_t size : lz_stream_sizes(lz.data())) {
    append_stream(coded, Bytes(lz).subspan(at, size), coder.encode);
    at += size;
  }
  if (coded.size() >= raw.size()) coded.clear();
  coded.shrink_to_fit();
  return coded;
}

bool decode_block(PtzCodec codec, Bytes coded, MutableBytes raw) {
  if (codec == PtzCodec::bbw) return decode_bbw_block(coded, raw);
  const EntropyCoder coder = coder_of(codec);
  if (coded.size() < kernels::kLzBlockHeaderBytes) return false;
  ByteVector lz(coded.begin(), coded.begin() + kernels::kLzBlockHeaderBytes);
  std::size_t at = kernels::kLzBlockHeaderBytes;
  for (const std::size_t size : lz_stream_sizes(coded.data())) {
    if (size > 4 * raw.size()) return false;
    lz.resize(lz.size() + size);
    if (!take_stream(coded, at, MutableBytes(lz).last(size), coder.decode)) return false;
  }
  return at == coded.size() &&
         cpu::lz77_decode(lz, raw) == TransformOutcome{StreamStatus::ok, static_cast<std::uint32_t>(raw.size())};
}

// Of LZ77: what the match finder has for each position, which is kept for the next block, and the LZ block with its
// coded form and what a vector takes to grow. Of the BWT: the sorted suffixes of the block and of its half; backwards,
// the steps of the walk.
std::size_t encoding_bytes(PtzCodec codec, std::size_t raw_bytes) {
  return (codec == PtzCodec::bbw ? 24 : 22) * raw_bytes + kCodingFixedBytes;
}
std::size_t decoding_bytes(PtzCodec codec, std::size_t raw_bytes) {
  return (codec == PtzCodec::bbw ? 9 : 6) * raw_bytes + kCodingFixedBytes;
}

}  // namespace ptxkit::codec
