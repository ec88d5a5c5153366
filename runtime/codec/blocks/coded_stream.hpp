// A stream within a coded block: its size as u32, then its bytes. The bytes are stored raw where entropy coding does
// not make them shorter.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/entropy/rans_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/transform_abi.hpp"
#include "runtime/codec/format/byte_stream.hpp"
#include "runtime/codec/format/codecs.hpp"

namespace ptxkit::codec {

inline uint32_t read_u32(const uint8_t* from) {
  return from[0] | uint32_t{from[1]} << 8 | uint32_t{from[2]} << 16 | uint32_t{from[3]} << 24;
}
inline void append_u32(std::vector<uint8_t>& to, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) to.push_back(static_cast<uint8_t>(value >> shift));
}

// The sizes in bytes of an LZ block's streams. Takes them from the header unchecked: the LZ decoder checks them.
inline std::array<size_t, kernels::kLzStreams> lz_stream_sizes(const uint8_t* header) {
  const size_t literals = read_u32(header + 4), matches = read_u32(header + 8), flag_words = read_u32(header + 12);
  return {4 * flag_words, literals, matches, matches, matches};
}

// The options of the encoder of rANS `chunked`, on the CPU and in kernels.
inline kernels::RansChunkedOptions chunked_options(const format::ChunkedRans& form) {
  return {.lanes = form.lanes, .chunk_bytes = form.chunk_bytes};
}

inline constexpr uint32_t kStreamStoredRaw = 1u << 31;  // flag in the size

inline void append_stored(std::vector<uint8_t>& to, format::Bytes content, bool is_coded) {
  append_u32(to, static_cast<uint32_t>(content.size()) | (is_coded ? 0 : kStreamStoredRaw));
  to.insert(to.end(), content.begin(), content.end());
}

// Encodes `stream` and appends it. encode(stream, room) -> TransformOutcome.
template <class Encode>
void append_stream(std::vector<uint8_t>& to, format::Bytes stream, const Encode& encode) {
  std::vector<uint8_t> room(stream.size());
  const kernels::TransformOutcome outcome = encode(stream, room);
  const bool shrinks = outcome.status == kernels::StreamStatus::ok && outcome.size_bytes < stream.size();
  append_stored(to, shrinks ? format::Bytes(room).first(outcome.size_bytes) : stream, shrinks);
}

// Finds the stream at byte `at` of `coded`, which decodes to `raw_bytes`. Sets its bytes and whether they are coded,
// and advances `at` past it. False if `coded` is too short or a raw size does not match.
inline bool find_stream(format::Bytes coded, size_t& at, size_t raw_bytes, format::Bytes& content, bool& is_coded) {
  if (coded.size() - at < 4) return false;
  const uint32_t word = read_u32(&coded[at]);
  const size_t stored = word & ~kStreamStoredRaw;
  at += 4;
  if (stored > coded.size() - at) return false;
  content = coded.subspan(at, stored);
  at += stored;
  is_coded = (word & kStreamStoredRaw) == 0;
  return is_coded || stored == raw_bytes;
}

// Decodes the stream at byte `at` of `coded` into exactly `stream`, and advances `at` past it. False if it is damaged.
template <class Decode>
bool take_stream(format::Bytes coded, size_t& at, format::MutableBytes stream, const Decode& decode) {
  format::Bytes content;
  bool is_coded = false;
  if (!find_stream(coded, at, stream.size(), content, is_coded)) return false;
  if (is_coded) {
    return decode(content, stream) ==
           kernels::TransformOutcome{kernels::StreamStatus::ok, static_cast<uint32_t>(stream.size())};
  }
  std::copy(content.begin(), content.end(), stream.begin());
  return true;
}

}  // namespace ptxkit::codec
