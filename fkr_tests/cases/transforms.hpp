// Every kernel of the family in kernels/transform_abi.hpp with its scalar reference, and inputs. The tests of the
// references, of the emulator, of a GPU and of damaged streams iterate over this list.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fkr_tests/cases/corpus.hpp"
#include "kernels/entropy/fse_reference.hpp"
#include "kernels/entropy/huffman_reference.hpp"
#include "kernels/entropy/rans_chunked_reference.hpp"
#include "kernels/entropy/rans_warp_reference.hpp"
#include "kernels/lz77/lz77_reference.hpp"

namespace ptxkit::testing {

using TransformReference = std::function<kernels::TransformOutcome(std::span<const uint8_t>, std::span<uint8_t>)>;

// An encoder and its decoder, with one choice of options.
struct TransformPair {
  std::string label;
  std::string_view encoder, decoder;  // kernels; no encoder if several kernels together encode
  std::vector<uint32_t> encoder_options, decoder_options;
  TransformReference encode, decode;
  std::function<size_t(size_t)> bound;                 // of the coded size, given the raw size
  size_t largest_coded = kernels::kMaxTransformBytes;  // the largest input of the decoder

  // The name as part of a test's name: letters and digits only.
  std::string name() const {
    std::string text;
    for (const char c : label) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? std::string(1, c) : "";
    return text;
  }
};
inline void PrintTo(const TransformPair& pair, std::ostream* out) { *out << pair.label; }

inline std::vector<TransformPair> transform_pairs() {
  using namespace kernels;
  std::vector<TransformPair> pairs;
  for (const RansChunkedOptions options :
       {RansChunkedOptions{12, 4, 1024}, RansChunkedOptions{12, 8, 1024}, RansChunkedOptions{12, 32, 1024},
        RansChunkedOptions{11, 4, 4096}, RansChunkedOptions{12, 8, 4096}, RansChunkedOptions{14, 32, 4096},
        RansChunkedOptions{12, 4, 8192}, RansChunkedOptions{10, 8, 8192}, RansChunkedOptions{12, 32, 8192},
        RansChunkedOptions{9, 4, 16384}, RansChunkedOptions{12, 8, 16384}, RansChunkedOptions{12, 32, 16384},
        RansChunkedOptions{13, 7, 333}, RansChunkedOptions{12, 1, 65535}}) {
    pairs.push_back(
        {.label = "rans_chunked " + std::to_string(options.scale_bits) + " bits, " + std::to_string(options.lanes) +
                  " lanes, " + std::to_string(options.chunk_bytes),
         .encoder = kRansChunkedEncode,
         .decoder = kRansChunkedDecode,
         .encoder_options = {options.scale_bits, options.lanes, options.chunk_bytes},
         .decoder_options = {},
         .encode = [options](auto src, auto dst) { return rans_chunked_encode_reference(src, dst, options); },
         .decode = [](auto src, auto dst) { return rans_chunked_decode_reference(src, dst); },
         .bound = [options](size_t size) { return rans_chunked_bound(size, options); }});
  }
  for (const RansWarpOptions options : {RansWarpOptions{}, RansWarpOptions{9, 8}, RansWarpOptions{10, 10},
                                        RansWarpOptions{11, 12}, RansWarpOptions{12, 20}}) {
    pairs.push_back({.label = "rans_warp " + std::to_string(options.scale_bits) + " bits, " +
                              std::to_string(1u << options.chunk_bits),
                     .encoder = kRansWarpEncode,
                     .decoder = kRansWarpDecode,
                     .encoder_options = {options.scale_bits, options.chunk_bits},
                     .decoder_options = {},
                     .encode = [options](auto src, auto dst) { return rans_warp_encode_reference(src, dst, options); },
                     .decode = [](auto src, auto dst) { return rans_warp_decode_reference(src, dst); },
                     .bound = [options](size_t size) { return rans_warp_bound(size, options); }});
  }
  pairs.push_back({.label = "huffman",
                   .encoder = kHuffmanEncode,
                   .decoder = kHuffmanDecode,
                   .encoder_options = {},
                   .decoder_options = {},
                   .encode = [](auto src, auto dst) { return huffman_encode_reference(src, dst); },
                   .decode = [](auto src, auto dst) { return huffman_decode_reference(src, dst); },
                   .bound = [](size_t size) { return huffman_bound(size); }});
  for (uint32_t bits = kMinAccuracyBits; bits <= kMaxAccuracyBits; ++bits) {
    pairs.push_back({.label = "fse " + std::to_string(bits) + " bits",
                     .encoder = kFseEncode,
                     .decoder = kFseDecode,
                     .encoder_options = {bits},
                     .decoder_options = {},
                     .encode = [bits](auto src, auto dst) { return fse_encode_reference(src, dst, {bits}); },
                     .decode = [](auto src, auto dst) { return fse_decode_reference(src, dst); },
                     .bound = [](size_t size) { return fse_bound(size); }});
  }
  pairs.push_back({.label = "lz77",
                   .encoder = {},
                   .decoder = kLz77Decode,
                   .encoder_options = {},
                   .decoder_options = {},
                   .encode =
                       [](auto src, auto dst) {
                         if (src.size() > kMaxTransformBytes) return TransformOutcome{StreamStatus::item_too_large, 0};
                         const Bytes block = demux_reference(src, lz77_lazy_reference(lz77_hash_reference(src)));
                         if (block.size() > dst.size()) return TransformOutcome{StreamStatus::output_overrun, 0};
                         std::copy(block.begin(), block.end(), dst.begin());
                         return TransformOutcome{StreamStatus::ok, static_cast<uint32_t>(block.size())};
                       },
                   .decode = [](auto src, auto dst) { return lz77_decode_reference(src, dst); },
                   .bound = [](size_t size) { return lz_block_bound(size); },
                   .largest_coded = kLzDecodeMaxBytes});
  return pairs;
}

// Raw inputs: empty, one symbol, two, all 256 equally often, a dominant one, incompressible, text-like.
inline std::vector<Bytes> transform_inputs(size_t longest) {
  std::vector<Bytes> inputs = {{}, {7}, {7, 9}, Bytes(31, 'x'), Bytes(33, 'x')};
  for (const size_t size : {longest / 3 + 1, longest}) {
    const auto seed = static_cast<uint32_t>(size);
    Bytes two(size), dominant = random_bytes(size, seed);
    for (size_t i = 0; i < size; ++i) {
      two[i] = i % 5 == 0 ? 'b' : 'a';
      if (dominant[i] > 3) dominant[i] = 0;
    }
    inputs.insert(inputs.end(), {Bytes(size, 'x'), two, ramp_bytes(size), dominant, random_bytes(size, seed),
                                 matchable_bytes(size, seed), fibonacci_bytes(size)});
  }
  return inputs;
}

// Room for a given number of bytes, none of which has been written yet.
class UntouchedRoom {
 public:
  explicit UntouchedRoom(size_t size) : bytes_(static_cast<uint8_t*>(std::calloc(size, 1)), std::free), size_(size) {}
  std::span<uint8_t> bytes() const { return {bytes_.get(), bytes_ == nullptr ? 0 : size_}; }

 private:
  std::unique_ptr<uint8_t, void (*)(void*)> bytes_;
  size_t size_;
};

// Bytes that repeat at the largest offset of a match, and their LZ block, with matches of every length.
struct LargeLzBlock {
  explicit LargeLzBlock(uint32_t size) : raw(random_bytes(kernels::kLzMaxOffset, 1)) {
    raw.resize(size);
    kernels::LzMatches matches(size);
    for (uint32_t i = kernels::kLzMaxOffset; i < size; ++i) {
      raw[i] = raw[i - kernels::kLzMaxOffset];
      matches[i] = {kernels::kLzMaxOffset, std::min(kernels::kLzMinMatch + i % 256, size - i), 0};
    }
    block = kernels::demux_reference(raw, matches);
  }
  Bytes raw, block;
};

// Codes above 11 bits for so many symbols that 1984 of the 32768 strings of 15 bits begin with one.
inline Bytes bytes_with_many_long_codes() {
  Bytes bytes;
  for (const uint32_t symbol : {0u, 1u, 2u, 3u})
    bytes.insert(bytes.end(), 300u << symbol, static_cast<uint8_t>(symbol));
  for (uint32_t symbol = 4; symbol < 256; ++symbol) bytes.push_back(static_cast<uint8_t>(symbol));
  std::shuffle(bytes.begin(), bytes.end(), std::mt19937(1));
  return bytes;
}

// `raw` as coded by the reference.
inline Bytes coded(const TransformPair& pair, const Bytes& raw) {
  Bytes stream(pair.bound(raw.size()));
  const auto outcome = pair.encode(raw, stream);
  stream.resize(outcome.size_bytes);
  return stream;
}

// Makes up to three changes: flipped bits, changed bytes, inserted or removed bytes, a cut end.
inline void damage(Bytes& stream, std::mt19937& random) {
  for (auto change = 1 + random() % 3; change != 0 && !stream.empty(); --change) {
    size_t at = random() % stream.size();
    if (random() % 2) at = std::max<size_t>(at, random() % stream.size());  // favours the content over the table
    const auto place = stream.begin() + static_cast<ptrdiff_t>(at);
    switch (random() % 5) {
      case 0:
        *place = static_cast<uint8_t>(random());
        break;
      case 1:
        *place ^= static_cast<uint8_t>(1u << random() % 8);
        break;
      case 2:
        if (random() % 4 == 0) stream.erase(place, stream.end());
        break;
      case 3:
        stream.insert(place, static_cast<uint8_t>(random()));
        break;
      case 4:
        stream.erase(place);
        break;
    }
  }
}

// `raw_bytes` bytes for each entry of `lanes`, as chunks with that many lanes, after one table.
struct RansChunks {
  Bytes raw, stream;
};
inline RansChunks rans_chunks_with_lanes(const std::vector<uint32_t>& lanes, uint32_t raw_bytes) {
  const Bytes once = matchable_bytes(raw_bytes, 9);
  RansChunks chunks;
  for (const uint32_t count : lanes) {
    Bytes stream(4000);
    const kernels::RansChunkedOptions options{.lanes = count, .chunk_bytes = raw_bytes};
    stream.resize(kernels::rans_chunked_encode_reference(once, stream, options).size_bytes);
    const auto chunk = stream.begin() + kernels::kRansLengthsAt + 2;
    if (chunks.stream.empty()) {
      chunks.stream.assign(stream.begin(), chunk);
      chunks.stream[kernels::kRansChunkCountAt] = static_cast<uint8_t>(lanes.size());
      for (size_t i = 1; i < lanes.size(); ++i) chunks.stream.insert(chunks.stream.end(), {chunk[-2], chunk[-1]});
    }
    chunks.stream.insert(chunks.stream.end(), chunk, stream.end());
    chunks.raw.insert(chunks.raw.end(), once.begin(), once.end());
  }
  return chunks;
}
// Batches of unequal chunks: among others, chunks that leave lanes of the warp unused, and chunks of unequal lanes that
// use all. In the second stream, four lanes of two chunks have bytes that begin at a word.
inline std::vector<RansChunks> unequal_rans_chunks() {
  return {rans_chunks_with_lanes({3, 32, 8, 1, 17, 4, 4, 16, 8, 4, 32, 5, 5, 5, 5, 5, 5, 31}, 1000),
          rans_chunks_with_lanes({5, 27}, 1001)};
}

// A stream for a decoder that is valid or just invalid, and the outcome that every decoder must give. The room is
// kCaseRoom.
struct DecoderCase {
  std::string label;
  std::string_view decoder;
  Bytes stream;
  kernels::StreamStatus status;
};
inline constexpr uint32_t kCaseRoom = 1000;

inline std::vector<DecoderCase> decoder_cases() {
  using kernels::StreamStatus;
  std::vector<DecoderCase> cases;
  // Four literals and a match of four bytes.
  for (const uint8_t offset : Bytes{0, 1, 4, 5}) {
    cases.push_back({"a match 4 bytes from the beginning, offset " + std::to_string(offset),
                     kernels::kLz77Decode,
                     {8, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0x10, 0, 0, 0, 'a', 'b', 'c', 'd', 0, offset, 0},
                     offset == 1 || offset == 4 ? StreamStatus::ok : StreamStatus::corrupt});
  }
  // 32 literals, a match of the last four, and a match that ends with the first byte of that match.
  Bytes turns = {40, 0, 0, 0, 32, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0};
  for (uint8_t i = 0; i < 32; ++i) turns.push_back('A' + i);
  turns.insert(turns.end(), {0, 0, 4, 7, 0, 0});
  cases.push_back({"a match of a byte of the match before", kernels::kLz77Decode, turns, StreamStatus::ok});
  // One chunk with several lanes, the words of the last lane last.
  const Bytes raw = matchable_bytes(kCaseRoom, 2);
  for (const uint32_t lanes : {2u, 32u}) {
    const std::string of_lanes = " of " + std::to_string(lanes);
    Bytes chunked(2000);
    const kernels::RansChunkedOptions options{.scale_bits = 12, .lanes = lanes, .chunk_bytes = kCaseRoom};
    chunked.resize(kernels::rans_chunked_encode_reference(raw, chunked, options).size_bytes);
    cases.push_back({"lanes," + of_lanes, kernels::kRansChunkedDecode, chunked, StreamStatus::ok});
    const size_t last_count_at = kernels::kRansLengthsAt + 2 + 1 + 4 * (2 * lanes - 1);
    Bytes longer = chunked, shorter = chunked, moved = chunked;
    longer[last_count_at] += 1;
    longer.insert(longer.end(), {0, 0});
    cases.push_back(
        {"a lane with a word too many" + of_lanes, kernels::kRansChunkedDecode, longer, StreamStatus::corrupt});
    shorter[last_count_at] -= 1;
    shorter.resize(shorter.size() - 2);
    cases.push_back(
        {"a lane with a word too few" + of_lanes, kernels::kRansChunkedDecode, shorter, StreamStatus::corrupt});
    moved[last_count_at - 4] -= 1;
    moved[last_count_at] += 1;
    cases.push_back({"a lane with the last word of the one before" + of_lanes, kernels::kRansChunkedDecode, moved,
                     StreamStatus::corrupt});
  }
  // One chunk of 32 lanes and one sequence of words.
  Bytes warp(2000);
  warp.resize(kernels::rans_warp_encode_reference(raw, warp, {}).size_bytes);
  cases.push_back({"32 lanes", kernels::kRansWarpDecode, warp, StreamStatus::ok});
  const size_t count_at = kernels::kRansWarpHeaderBytes + 32 + 2 * std::set<uint8_t>(raw.begin(), raw.end()).size();
  Bytes longer = warp, shorter = warp;
  longer[count_at] += 1;
  longer.insert(longer.end(), {0, 0});
  cases.push_back({"a chunk with a word too many", kernels::kRansWarpDecode, longer, StreamStatus::corrupt});
  shorter[count_at] -= 1;
  shorter.resize(shorter.size() - 2);
  cases.push_back({"a chunk with a word too few", kernels::kRansWarpDecode, shorter, StreamStatus::corrupt});
  return cases;
}

}  // namespace ptxkit::testing
