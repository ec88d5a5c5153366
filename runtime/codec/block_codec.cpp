#include "runtime/codec/block_codec.hpp"

#include <array>
#include <utility>

#include "kernels/entropy/fse_reference.hpp"
#include "kernels/entropy/huffman_reference.hpp"
#include "kernels/entropy/rans_warp_reference.hpp"
#include "kernels/lz77/lz77_reference.hpp"
#include "runtime/codec/bbw_block.hpp"
#include "runtime/codec/coded_stream.hpp"

namespace ptxkit::codec {
namespace {

using format::Bytes;
using format::MutableBytes;
using format::PtzCodec;
using kernels::StreamStatus;
using kernels::TransformOutcome;
using ByteVector = std::vector<std::uint8_t>;

constexpr std::size_t kStreams = 5;  // flags, literals, lengths, low and high bytes of offsets

struct EntropyCoder {
  TransformOutcome (*encode)(Bytes raw, MutableBytes coded);
  TransformOutcome (*decode)(Bytes coded, MutableBytes raw);
};

// Of the streams of an LZ block.
EntropyCoder coder_of(PtzCodec codec) {
  switch (codec) {
    case PtzCodec::lzf:
      return {[](Bytes raw, MutableBytes coded) { return kernels::fse_encode_reference(raw, coded, {}); },
              kernels::fse_decode_reference};
    case PtzCodec::deflate_like:
      return {kernels::huffman_encode_reference, kernels::huffman_decode_reference};
    default:
      return {[](Bytes raw, MutableBytes coded) { return kernels::rans_warp_encode_reference(raw, coded, {}); },
              kernels::rans_warp_decode_reference};
  }
}

// The sizes of an LZ block's streams; its header is checked by the LZ decoder.
std::array<std::size_t, kStreams> stream_sizes(const std::uint8_t* lz_header) {
  const std::size_t literals = read_u32(lz_header + 4), matches = read_u32(lz_header + 8),
                    words = read_u32(lz_header + 12);
  return {4 * words, literals, matches, matches, matches};
}

}  // namespace

std::optional<PtzCodec> block_codec_named(std::string_view name) {
  static constexpr std::pair<std::string_view, PtzCodec> kNames[] = {
      {"lzr", PtzCodec::lzr}, {"lzf", PtzCodec::lzf}, {"deflate-like", PtzCodec::deflate_like}, {"bbw", PtzCodec::bbw}};
  for (const auto& [known, codec] : kNames) {
    if (known == name) return codec;
  }
  return std::nullopt;
}

unsigned usual_block_bits(PtzCodec codec) { return codec == PtzCodec::bbw ? format::kPtzMaxBlockBits : 18; }

ByteVector encode_block(PtzCodec codec, Bytes raw) {
  if (codec == PtzCodec::bbw) return encode_bbw_block(raw);
  const EntropyCoder coder = coder_of(codec);
  const ByteVector lz = kernels::demux_reference(raw, kernels::lz77_lazy_reference(kernels::lz77_hash_reference(raw)));
  ByteVector coded(lz.begin(), lz.begin() + kernels::kLzBlockHeaderBytes);
  std::size_t at = kernels::kLzBlockHeaderBytes;
  for (const std::size_t size : stream_sizes(lz.data())) {
    append_stream(coded, Bytes(lz).subspan(at, size), coder.encode);
    at += size;
  }
  if (coded.size() >= raw.size()) coded.clear();
  return coded;
}

bool decode_block(PtzCodec codec, Bytes coded, MutableBytes raw) {
  if (codec == PtzCodec::bbw) return decode_bbw_block(coded, raw);
  const EntropyCoder coder = coder_of(codec);
  if (coded.size() < kernels::kLzBlockHeaderBytes) return false;
  ByteVector lz(coded.begin(), coded.begin() + kernels::kLzBlockHeaderBytes);
  std::size_t at = kernels::kLzBlockHeaderBytes;
  for (const std::size_t size : stream_sizes(coded.data())) {
    if (size > 4 * raw.size()) return false;
    lz.resize(lz.size() + size);
    if (!take_stream(coded, at, MutableBytes(lz).last(size), coder.decode)) return false;
  }
  return at == coded.size() && kernels::lz77_decode_reference(lz, raw) ==
                                   TransformOutcome{StreamStatus::ok, static_cast<std::uint32_t>(raw.size())};
}

}  // namespace ptxkit::codec
