// rANS with 32 states and one word stream. With AVX2 the decoder takes eight states at a time: a gather loads their
// slots, and a permutation selected by the mask of states that need a word distributes the next words.
#include <algorithm>
#include <bit>

#include "kernels/entropy/rans_warp_reference.hpp"
#include "runtime/codec/coders/coders.hpp"
#include "runtime/codec/coders/features.hpp"
#include "runtime/codec/coders/memory.hpp"
#include "runtime/codec/coders/rans_symbol.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ptxkit::cpu {
namespace {

using kernels::kRansLow;
using kernels::kRansWarpLanes;
using kernels::kRansWarpStatesBytes;
using kernels::StreamStatus;

// A slot: offset in the low 12 bits, frequency - 1 in the next 12 bits, symbol above.
constexpr uint32_t kFieldBits = 12, kFieldMask = (1u << kFieldBits) - 1;
using Slots = std::array<uint32_t, 1u << kernels::kMaxWarpScaleBits>;

void fill(Slots& slots, const kernels::RansWarpStream& stream) {
  uint32_t* slot = slots.data();
  for (uint32_t s = 0; s < kernels::kSymbols; ++s) {
    const uint32_t f = stream.frequencies[s];
    for (uint32_t i = 0; i < f; ++i) *slot++ = s << 2 * kFieldBits | (f - 1) << kFieldBits | i;
  }
}

struct Rows {
  const Slots& slots;
  uint32_t scale_bits;
  std::array<uint32_t, kRansWarpLanes> states;
  const uint8_t* word;

  // Decodes `count` symbols of a row. May read one word more than the row needs.
  void decode(uint8_t* to, size_t count) {
    for (size_t lane = 0; lane < count; ++lane) {
      uint32_t x = states[lane];
      const uint32_t slot = slots[x & ((1u << scale_bits) - 1)];
      const uint32_t high = x >> scale_bits;
      x = (slot >> kFieldBits & kFieldMask) * high + high + (slot & kFieldMask);
      to[lane] = static_cast<uint8_t>(slot >> 2 * kFieldBits);
      const bool needs = x < kRansLow;
      states[lane] = needs ? x << 16 | load<uint16_t>(word) : x;
      word += needs ? 2 : 0;
    }
  }

  // Decodes up to `count` rows, and stops once `word` is past `last`. Returns the number of rows.
  size_t decode_rows(uint8_t* to, size_t count, const uint8_t* last) {
    size_t row = 0;
    for (; row < count && word <= last; ++row) decode(to + row * kRansWarpLanes, kRansWarpLanes);
    return row;
  }
};

#if defined(__x86_64__)

// For each mask of eight lanes: the index of the next word that each lane gets.
constexpr auto kDeal = [] {
  std::array<std::array<uint8_t, 8>, 256> deal{};
  for (uint32_t mask = 0; mask < 256; ++mask) {
    uint8_t next = 0;
    for (uint32_t lane = 0; lane < 8; ++lane) {
      deal[mask][lane] = next;
      next = static_cast<uint8_t>(next + (mask >> lane & 1));
    }
  }
  return deal;
}();

[[gnu::target("avx2,popcnt")]] size_t decode_rows_avx2(Rows& rows, uint8_t* to, size_t count, const uint8_t* last) {
  constexpr size_t kVectors = kRansWarpLanes / 8;
  __m256i states[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    states[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&rows.states[8 * v]));
  }
  const auto* slots = reinterpret_cast<const int*>(rows.slots.data());
  const __m256i slot_mask = _mm256_set1_epi32(static_cast<int>((1u << rows.scale_bits) - 1));
  const __m256i field_mask = _mm256_set1_epi32(kFieldMask);
  const __m128i scale_bits = _mm_cvtsi32_si128(static_cast<int>(rows.scale_bits));
  const uint8_t* word = rows.word;
  size_t row = 0;
  for (; row < count && word <= last; ++row, to += kRansWarpLanes) {
    __m256i symbols[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      const __m256i slot = _mm256_i32gather_epi32(slots, _mm256_and_si256(states[v], slot_mask), 4);
      const __m256i high = _mm256_srl_epi32(states[v], scale_bits);
      const __m256i frequency = _mm256_and_si256(_mm256_srli_epi32(slot, kFieldBits), field_mask);
      const __m256i x = _mm256_add_epi32(_mm256_add_epi32(_mm256_mullo_epi32(frequency, high), high),
                                         _mm256_and_si256(slot, field_mask));
      symbols[v] = _mm256_srli_epi32(slot, 2 * kFieldBits);
      const __m256i needs = _mm256_cmpeq_epi32(_mm256_srli_epi32(x, 16), _mm256_setzero_si256());
      const auto mask = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(needs)));
      const __m256i next = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(word)));
      const __m256i deal = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kDeal[mask].data())));
      const __m256i refilled = _mm256_or_si256(_mm256_slli_epi32(x, 16), _mm256_permutevar8x32_epi32(next, deal));
      states[v] = _mm256_blendv_epi8(x, refilled, needs);
      word += 2 * static_cast<size_t>(std::popcount(mask));
    }
    // Packing works within 128-bit halves: the quarters of the four vectors come out in the order 0 2 4 6 1 3 5 7.
    const __m256i packed =
        _mm256_packus_epi16(_mm256_packus_epi32(symbols[0], symbols[1]), _mm256_packus_epi32(symbols[2], symbols[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  }
  for (size_t v = 0; v < kVectors; ++v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(&rows.states[8 * v]), states[v]);
  }
  rows.word = word;
  return row;
}

size_t decode_rows(Rows& rows, uint8_t* to, size_t count, const uint8_t* last) {
  return vectors >= Vectors::avx2 ? decode_rows_avx2(rows, to, count, last) : rows.decode_rows(to, count, last);
}

#else

size_t decode_rows(Rows& rows, uint8_t* to, size_t count, const uint8_t* last) {
  return rows.decode_rows(to, count, last);
}

#endif

// A row reads at most this many bytes from its first word.
constexpr size_t kRowReach = 2 * kRansWarpLanes;

// Decodes a chunk that starts with its states, followed by its words. Reads nothing at or after `src_end`.
bool decode_chunk(const uint8_t* chunk, size_t word_count, const uint8_t* src_end, const Slots& slots,
                  uint32_t scale_bits, MutableBytes to) {
  Rows rows{slots, scale_bits, {}, chunk + kRansWarpStatesBytes};
  std::memcpy(rows.states.data(), chunk, kRansWarpStatesBytes);
  if (std::any_of(rows.states.begin(), rows.states.end(), [](uint32_t x) { return x < kRansLow; })) return false;
  const uint8_t* end = rows.word + 2 * word_count;
  const size_t row_count = to.size() / kRansWarpLanes;
  size_t row = 0;
  if (static_cast<size_t>(src_end - rows.word) >= kRowReach) {
    row = decode_rows(rows, to.data(), row_count, std::min(end, src_end - kRowReach));
  }
  // Decodes the rest from a copy with space after it, because a row may read past `src_end`.
  std::array<uint8_t, 2 * kRowReach> tail{};
  if (rows.word > end) return false;
  const size_t rest = std::min<size_t>(kRowReach, static_cast<size_t>(end - rows.word));
  std::memcpy(tail.data(), rows.word, rest);
  rows.word = tail.data();
  end = tail.data() + rest;
  row += decode_rows(rows, to.data() + row * kRansWarpLanes, row_count - row, end);
  if (row < row_count || rows.word > end) return false;
  rows.decode(to.data() + row * kRansWarpLanes, to.size() % kRansWarpLanes);
  return rows.word == end &&
         std::all_of(rows.states.begin(), rows.states.end(), [](uint32_t x) { return x == kRansLow; });
}

// Encodes a chunk backwards and writes its words before `word`. Returns where they begin.
uint16_t* encode_chunk(Bytes chunk, const RansSymbols& symbols, std::array<uint32_t, kRansWarpLanes>& states,
                       uint16_t* word) {
  states.fill(kRansLow);
  size_t i = chunk.size();
  while (i % kRansWarpLanes != 0) {
    --i;
    code_symbol(symbols[chunk[i]], states[i % kRansWarpLanes], word);
  }
  while (i != 0) {
    i -= kRansWarpLanes;
    for (size_t lane = kRansWarpLanes; lane-- != 0;) code_symbol(symbols[chunk[i + lane]], states[lane], word);
  }
  return word;
}

}  // namespace

TransformOutcome rans_warp_encode(Bytes src, MutableBytes dst, const kernels::RansWarpOptions& options) {
  kernels::RansWarpHead head;
  const TransformOutcome begun = kernels::begin_rans_warp(src, dst, options, head);
  if (begun.status != StreamStatus::ok || src.empty()) return begun;
  const RansSymbols symbols = rans_symbols(head.frequencies, options.scale_bits);
  const size_t chunk_bytes = std::min(src.size(), size_t{1} << options.chunk_bits);
  const auto room = uncleared<uint16_t>(chunk_bytes + 1);
  uint16_t* const words_end = room.get() + chunk_bytes + 1;
  std::array<uint32_t, kRansWarpLanes> states;
  size_t at = begun.size_bytes;
  uint8_t* count = dst.data() + head.counts_at;
  for (size_t from = 0; from < src.size(); from += chunk_bytes, count += 4) {
    const Bytes chunk = src.subspan(from, std::min(chunk_bytes, src.size() - from));
    const uint16_t* const words = encode_chunk(chunk, symbols, states, words_end);
    const auto word_count = static_cast<size_t>(words_end - words);
    if (dst.size() - at < kRansWarpStatesBytes + 2 * word_count) return {StreamStatus::output_overrun, 0};
    store(count, static_cast<uint32_t>(word_count));
    std::memcpy(dst.data() + at, states.data(), kRansWarpStatesBytes);
    std::memcpy(dst.data() + at + kRansWarpStatesBytes, words, 2 * word_count);
    at += kRansWarpStatesBytes + 2 * word_count;
  }
  return {StreamStatus::ok, static_cast<uint32_t>(at)};
}

TransformOutcome rans_warp_decode(Bytes src, MutableBytes dst) {
  kernels::RansWarpStream stream;
  const StreamStatus status = kernels::open_rans_warp(src, dst.size(), stream);
  if (status != StreamStatus::ok || stream.raw_bytes == 0) return {status, 0};
  Slots slots;
  fill(slots, stream);
  const uint8_t *count = stream.counts, *chunk = stream.chunks, *const src_end = src.data() + src.size();
  for (size_t from = 0; from < stream.raw_bytes; from += stream.chunk_bytes, count += 4) {
    const auto words = load<uint32_t>(count);
    const auto to = dst.subspan(from, std::min(stream.chunk_bytes, stream.raw_bytes - from));
    if (!decode_chunk(chunk, words, src_end, slots, stream.scale_bits, to)) return {StreamStatus::corrupt, 0};
    chunk += kRansWarpStatesBytes + 2 * size_t{words};
  }
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::cpu
