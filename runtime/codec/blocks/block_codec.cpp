#include "runtime/codec/blocks/block_codec.hpp"

#include <functional>

#include "kernels/lz77/abi.hpp"
#include "runtime/codec/blocks/bbw_block.hpp"
#include "runtime/codec/blocks/coded_stream.hpp"
#include "runtime/codec/blocks/typed_block.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "support/check.hpp"

namespace ptxkit::codec {
namespace {

using format::Bytes;
using format::MutableBytes;
using format::PtzCoder;
using format::PtzCoding;
using format::PtzModel;
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

ByteVector encode_lz_block(const PtzCoding& codec, Bytes raw, MatchSearch search) {
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

bool decode_lz_block(const PtzCoding& codec, Bytes coded, MutableBytes raw) {
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

// The memory of a model for each byte of a block. LZ77 encoding: match finder entries for every position (cached for
// the next block), the LZ block, its coded form and the growth of the vector. BWT encoding: the sorted suffixes of the
// block and of its half. BWT decoding: the steps of the inverse walk. Planes: the room of the coded form, and its copy.
struct MemoryFactors {
  size_t encoding, decoding;
};
MemoryFactors memory_factors(PtzModel model) {
  switch (model) {
    case PtzModel::lz77:
      return {22, 6};
    case PtzModel::bwt:
      return {24, 9};
    case PtzModel::planes:
      return {2, 0};
  }
  PTXKIT_CHECK(false, "a row of codecs.def has another model");
}

}  // namespace

ByteVector encode_block(const PtzCoding& codec, Bytes raw, MatchSearch search) {
  switch (format::row_of(codec).model) {
    case PtzModel::lz77:
      return encode_lz_block(codec, raw, search);
    case PtzModel::bwt:
      return encode_bbw_block(raw);
    case PtzModel::planes:
      return encode_typed_block(codec.elements, raw);
  }
  PTXKIT_CHECK(false, "a row of codecs.def has another model");
}

bool decode_block(const PtzCoding& codec, Bytes coded, MutableBytes raw) {
  switch (format::row_of(codec).model) {
    case PtzModel::lz77:
      return decode_lz_block(codec, coded, raw);
    case PtzModel::bwt:
      return decode_bbw_block(coded, raw);
    case PtzModel::planes:
      return decode_typed_block(codec.elements, coded, raw);
  }
  PTXKIT_CHECK(false, "a row of codecs.def has another model");
}

size_t encoding_bytes(const PtzCoding& codec, size_t raw_bytes) {
  return memory_factors(format::row_of(codec).model).encoding * raw_bytes + kCodingFixedBytes;
}
size_t decoding_bytes(const PtzCoding& codec, size_t raw_bytes) {
  return memory_factors(format::row_of(codec).model).decoding * raw_bytes + kCodingFixedBytes;
}

}  // namespace ptxkit::codec
