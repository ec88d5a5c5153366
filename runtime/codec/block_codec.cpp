#include "runtime/codec/block_codec.hpp"

#include <algorithm>
#include <array>

#include "kernels/entropy/fse_reference.hpp"
#include "kernels/entropy/huffman_reference.hpp"
#include "kernels/entropy/rans_warp_reference.hpp"
#include "kernels/lz77/lz77_reference.hpp"

namespace ptxkit::codec {
namespace {

using format::Bytes;
using format::MutableBytes;
using format::PtzCodec;
using kernels::StreamStatus;
using kernels::TransformOutcome;
using ByteVector = std::vector<std::uint8_t>;

constexpr std::uint32_t kStoredRaw = 1u << 31;  // of a stream's size
constexpr std::size_t kStreams = 5;             // flags, literals, lengths, low and high bytes of offsets

std::uint32_t read_u32(const std::uint8_t* from) {
  return from[0] | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16 | std::uint32_t{from[3]} << 24;
}
void append_u32(ByteVector& to, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) to.push_back(static_cast<std::uint8_t>(value >> shift));
}

struct EntropyCoder {
  std::string_view name;
  TransformOutcome (*encode)(Bytes raw, MutableBytes coded);
  TransformOutcome (*decode)(Bytes coded, MutableBytes raw);
};

const EntropyCoder* coder_of(PtzCodec codec) {
  static constexpr EntropyCoder kLzr = {
      "lzr", [](Bytes raw, MutableBytes coded) { return kernels::rans_warp_encode_reference(raw, coded, {}); },
      kernels::rans_warp_decode_reference};
  static constexpr EntropyCoder kLzf = {
      "lzf", [](Bytes raw, MutableBytes coded) { return kernels::fse_encode_reference(raw, coded, {}); },
      kernels::fse_decode_reference};
  static constexpr EntropyCoder kDeflateLike = {"deflate-like", kernels::huffman_encode_reference,
                                                kernels::huffman_decode_reference};
  switch (codec) {
    case PtzCodec::lzr:
      return &kLzr;
    case PtzCodec::lzf:
      return &kLzf;
    case PtzCodec::deflate_like:
      return &kDeflateLike;
    case PtzCodec::bbw:
      return nullptr;  // reserved
  }
  return nullptr;
}

// The sizes of an LZ block's streams; its header is checked by the LZ decoder.
std::array<std::size_t, kStreams> stream_sizes(const std::uint8_t* lz_header) {
  const std::size_t literals = read_u32(lz_header + 4), matches = read_u32(lz_header + 8),
                    words = read_u32(lz_header + 12);
  return {4 * words, literals, matches, matches, matches};
}

}  // namespace

std::optional<PtzCodec> block_codec_named(std::string_view name) {
  for (const PtzCodec codec : {PtzCodec::lzr, PtzCodec::lzf, PtzCodec::deflate_like}) {
    if (coder_of(codec)->name == name) return codec;
  }
  return std::nullopt;
}

bool has_block_codec(PtzCodec codec) { return coder_of(codec) != nullptr; }

ByteVector encode_block(PtzCodec codec, Bytes raw) {
  const EntropyCoder& coder = *coder_of(codec);
  const ByteVector lz = kernels::demux_reference(raw, kernels::lz77_lazy_reference(kernels::lz77_hash_reference(raw)));
  ByteVector coded(lz.begin(), lz.begin() + kernels::kLzBlockHeaderBytes);
  std::size_t at = kernels::kLzBlockHeaderBytes;
  for (const std::size_t size : stream_sizes(lz.data())) {
    const Bytes stream = Bytes(lz).subspan(at, size);
    at += size;
    ByteVector packed(size);
    const TransformOutcome outcome = coder.encode(stream, packed);
    const bool shrinks = outcome.status == StreamStatus::ok && outcome.size_bytes < size;
    packed.resize(shrinks ? outcome.size_bytes : size);
    append_u32(coded, static_cast<std::uint32_t>(packed.size()) | (shrinks ? 0 : kStoredRaw));
    const auto& content = shrinks ? Bytes(packed) : stream;
    coded.insert(coded.end(), content.begin(), content.end());
  }
  if (coded.size() >= raw.size()) coded.clear();
  return coded;
}

bool decode_block(PtzCodec codec, Bytes coded, MutableBytes raw) {
  const EntropyCoder& coder = *coder_of(codec);
  if (coded.size() < kernels::kLzBlockHeaderBytes) return false;
  ByteVector lz(coded.begin(), coded.begin() + kernels::kLzBlockHeaderBytes);
  std::size_t at = kernels::kLzBlockHeaderBytes;
  for (const std::size_t size : stream_sizes(coded.data())) {
    if (size > 4 * raw.size() || coded.size() - at < 4) return false;
    const std::uint32_t word = read_u32(coded.data() + at);
    const std::size_t stored = word & ~kStoredRaw;
    at += 4;
    if (stored > coded.size() - at) return false;
    const Bytes content = coded.subspan(at, stored);
    at += stored;
    lz.resize(lz.size() + size);
    const MutableBytes stream = MutableBytes(lz).last(size);
    if ((word & kStoredRaw) != 0) {
      if (stored != size) return false;
      std::copy(content.begin(), content.end(), stream.begin());
    } else if (coder.decode(content, stream) != TransformOutcome{StreamStatus::ok, static_cast<std::uint32_t>(size)}) {
      return false;
    }
  }
  return at == coded.size() && kernels::lz77_decode_reference(lz, raw) ==
                                   TransformOutcome{StreamStatus::ok, static_cast<std::uint32_t>(raw.size())};
}

}  // namespace ptxkit::codec
