#include "runtime/codec/blocks/block_codec.hpp"

#include <functional>

#include "kernels/lz77/abi.hpp"
#include "runtime/codec/blocks/bbw_block.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using format::Bytes;
using format::MutableBytes;
using format::PtzCoder;
using format::PtzCoding;
using kernels::StreamStatus;
using kernels::TransformOutcome;
using ByteVector = std::vector<uint8_t>;

constexpr size_t kCodingFixedBytes = 512u << 10;  // for tables

struct EntropyCoder {
  std::function<TransformOutcome(Bytes raw, MutableBytes coded)> encode;
  TransformOutcome (*decode)(Bytes coded, MutableBytes raw);
};

// The entropy coder for the streams of an LZ block.
EntropyCoder coder_of(const PtzCoding& codec) {
  switch (format::row_of(codec).coder) {
    case PtzCoder::rans:
      if (codec.chunked) {
        return {[options = chunked_options(*codec.chunked)](Bytes raw, MutableBytes coded) {
                  return cpu::rans_chunked_encode(raw, coded, options);
                },
                cpu::rans_chunked_decode};
      }
      return {[](Bytes raw, MutableBytes coded) { return cpu::rans_warp_encode(raw, coded, {}); },
              cpu::rans_warp_decode};
    case PtzCoder::fse:
      return {[](Bytes raw, MutableBytes coded) { return cpu::fse_encode(raw, coded, {}); }, cpu::fse_decode};
    case PtzCoder::huffman:
      return {cpu::huffman_encode, cpu::huffman_decode};
  }
  PTXKIT_CHECK(false, "a row of codecs.def has another coder");
}

bool is_bwt(const PtzCoding& codec) { return format::row_of(codec).model == format::PtzModel::bwt; }

}  // namespace

ByteVector encode_block(const PtzCoding& codec, Bytes raw, MatchSearch search) {
  if (is_bwt(codec)) return encode_bbw_block(raw);
  const EntropyCoder coder = coder_of(codec);
  ByteVector lz(kernels::lz_block_bound(raw.size()));
  const auto parse = search == MatchSearch::tables ? cpu::lz77_encode_fast : cpu::lz77_encode;
  lz.resize(parse(raw, lz).size_bytes);
  ByteVector coded(lz.begin(), lz.begin() + kernels::kLzBlockHeaderBytes);
  size_t at = kernels::kLzBlockHeaderBytes;
  for (const size_t size : lz_stream_sizes(lz.data())) {
    append_stream(coded, Bytes(lz).subspan(at, size), coder.encode);
    at += size;
  }
  if (coded.size() >= raw.size()) coded.clear();
  coded.shrink_to_fit();
  return coded;
}

bool decode_block(const PtzCoding& codec, Bytes coded, MutableBytes raw) {
  if (is_bwt(codec)) return decode_bbw_block(coded, raw);
  const EntropyCoder coder = coder_of(codec);
  if (coded.size() < kernels::kLzBlockHeaderBytes) return false;
  ByteVector lz(coded.begin(), coded.begin() + kernels::kLzBlockHeaderBytes);
  size_t at = kernels::kLzBlockHeaderBytes;
  for (const size_t size : lz_stream_sizes(coded.data())) {
    if (size > 4 * raw.size()) return false;
    lz.resize(lz.size() + size);
    if (!take_stream(coded, at, MutableBytes(lz).last(size), coder.decode)) return false;
  }
  return at == coded.size() &&
         cpu::lz77_decode(lz, raw) == TransformOutcome{StreamStatus::ok, static_cast<uint32_t>(raw.size())};
}

// LZ77 encoding: match finder entries for every position (cached for the next block), the LZ block, its coded form and
// the growth of the vector. BWT encoding: the sorted suffixes of the block and of its half. BWT decoding: the steps of
// the inverse walk.
size_t encoding_bytes(const PtzCoding& codec, size_t raw_bytes) {
  return (is_bwt(codec) ? 24 : 22) * raw_bytes + kCodingFixedBytes;
}
size_t decoding_bytes(const PtzCoding& codec, size_t raw_bytes) {
  return (is_bwt(codec) ? 9 : 6) * raw_bytes + kCodingFixedBytes;
}

}  // namespace ptxkit::codec
