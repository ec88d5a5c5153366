// Decodes a row of symbols of all 32 lanes at once. The next 64 bits of each lane are spread over four vectors of 32
// words, the first bits in the first vector; each code's length shifts them. No table is needed to find that length:
// canonical codes of one length precede all longer ones, so the length follows from counting the lengths whose last
// code is below the window. The distance of a code from the first of its length gives the symbol.
#include "runtime/codec/coders/huffman_avx512.hpp"

#if defined(__x86_64__)

#include <algorithm>

#include <immintrin.h>

#include "runtime/codec/coders/bit_lanes.hpp"

// Attribute of every function that uses 512-bit vectors.
#define PTXKIT_AVX512 gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")

namespace ptxkit::cpu {
namespace {

using kernels::kBitLanes;
using kernels::kMaxCodeBits;
using kernels::kSymbols;

constexpr uint32_t kWordBits = 16;

// Symbols in the order of their codes. A word that begins with a code of `bits` bits has the symbol symbols[(word >>
// (kWordBits - bits)) + offsets[bits]], where the index is modulo 256.
struct CodeOrder {
  explicit CodeOrder(const std::array<uint8_t, kSymbols>& lengths) {
    std::array<uint32_t, kMaxCodeBits + 1> counts{};
    for (const uint8_t length : lengths) ++counts[length];
    counts[0] = 0;
    uint32_t code = 0, index = 0;
    std::array<uint32_t, kMaxCodeBits + 1> next{};
    for (uint32_t bits = 1; bits <= kMaxCodeBits; ++bits) {
      code *= 2;
      next[bits] = index;
      offsets[bits] = static_cast<uint16_t>(index - code);
      code += counts[bits];
      index += counts[bits];
      last_words[bits] = static_cast<uint16_t>((code << (kWordBits - bits)) - 1);
      if (counts[bits] == 0) continue;
      shortest = std::min(shortest, bits);
      longest = bits;
    }
    for (uint32_t s = 0; s < kSymbols; ++s) {
      if (lengths[s] != 0) symbols[next[lengths[s]]++] = static_cast<uint8_t>(s);
    }
  }

  std::array<uint8_t, kSymbols> symbols{};
  std::array<uint16_t, 32> offsets{};
  // The last word that begins with a code of at most this many bits.
  std::array<uint16_t, kMaxCodeBits + 1> last_words{};
  uint32_t shortest = kMaxCodeBits, longest = 1;
};

// The places of all lanes, and the windows that start there.
class Windows {
 public:
  Windows(const kernels::Lanes& lanes, Bytes src) : src_(src) {
    for (uint32_t k = 0; k < kBitLanes; ++k) {
      places_[k] = static_cast<uint32_t>(BitLane(src, lanes[k]).place);
      prefetch(k, 0);
      prefetch(k, kLineBytes);
    }
  }

  // Call it before every row that begins to read a window. Sources are usually not in the first-level cache, and
  // hardware does not prefetch 32 streams. In kPrefetchRows rows a lane advances by less than a cache line.
  void prefetch_for(size_t row) {
    if (row < next_prefetch_) return;
    next_prefetch_ = row + kPrefetchRows;
    for (uint32_t k = 0; k < kBitLanes; ++k) prefetch(k, 2 * kLineBytes);
  }

  // Bytes after the source read as zero. A place is at most 63 bits after the start of the source's last eight bytes;
  // otherwise the lane is damaged and the result does not matter.
  const uint64_t* read() {
    const auto last = static_cast<uint32_t>(src_.size() - 8);
#pragma GCC unroll 32
    for (uint32_t k = 0; k < kBitLanes; ++k) {
      const uint32_t byte = std::min(places_[k] / 8, last);
      windows_[k] = load_big_endian(src_.data() + byte) << ((places_[k] - 8 * byte) & 63);
    }
    return windows_.data();
  }

  [[PTXKIT_AVX512]] void skip(__m512i bits) {
    auto* const low = reinterpret_cast<__m512i*>(places_.data());
    auto* const high = low + 1;
    *low = _mm512_add_epi32(*low, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(bits)));
    *high = _mm512_add_epi32(*high, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(bits, 1)));
  }

  bool are_at_end(const kernels::Lanes& lanes) const {
    for (uint32_t k = 0; k < kBitLanes; ++k) {
      BitLane lane(src_, lanes[k]);
      lane.place = places_[k];
      if (!lane.is_at_end()) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kLineBytes = 64;
  static constexpr size_t kPrefetchRows = kLineBytes * 8 / kWordBits;

  // Always inlined: GCC 12 considers a function that only prefetches to have no effect and drops its calls.
  [[gnu::always_inline]] void prefetch(uint32_t k, uint32_t ahead) const {
    __builtin_prefetch(src_.data() + std::min<size_t>(places_[k] / 8 + ahead, src_.size() - 1));
  }

  Bytes src_;
  size_t next_prefetch_ = 0;
  alignas(64) std::array<uint32_t, kBitLanes> places_;
  alignas(64) std::array<uint64_t, kBitLanes> windows_;
};

// N: at least order.longest - order.shortest.
template <uint32_t N>
[[PTXKIT_AVX512]] void decode(const CodeOrder& order, Windows& lanes, MutableBytes dst) {
  __m512i lasts[N];
  for (uint32_t i = 0; i < N; ++i) {  // no word is greater than one of all ones
    const uint32_t bits = std::min(order.shortest + i, order.longest);
    lasts[i] = _mm512_set1_epi16(static_cast<short>(bits < order.longest ? order.last_words[bits] : 0xFFFF));
  }
  __m512i symbols[4];
  for (size_t i = 0; i < 4; ++i) symbols[i] = _mm512_loadu_si512(&order.symbols[64 * i]);
  const __m512i offsets = _mm512_loadu_si512(order.offsets.data());
  const __m512i shortest = _mm512_set1_epi16(static_cast<short>(order.shortest));
  const __m512i full = _mm512_set1_epi16(static_cast<short>(kWindowBits - order.longest));
  const __m512i one = _mm512_set1_epi16(1), word_bits = _mm512_set1_epi16(kWordBits);
  // Index vectors for a pair of vectors of eight windows each: first_words selects the first words and then the second
  // ones, third_words the third and fourth.
  const __m512i first_words = _mm512_set_epi16(62, 58, 54, 50, 46, 42, 38, 34, 30, 26, 22, 18, 14, 10, 6, 2,  //
                                               63, 59, 55, 51, 47, 43, 39, 35, 31, 27, 23, 19, 15, 11, 7, 3);
  const __m512i third_words = _mm512_sub_epi16(first_words, _mm512_set1_epi16(2));

  const size_t rest = dst.size() % kBitLanes, rows = dst.size() / kBitLanes + (rest != 0 ? 1 : 0);
  uint8_t* to = dst.data();
  for (size_t row = 0; row < rows;) {
    lanes.prefetch_for(row);
    const uint64_t* const windows = lanes.read();
    const __m512i w0 = _mm512_load_si512(windows), w1 = _mm512_load_si512(windows + 8),
                  w2 = _mm512_load_si512(windows + 16), w3 = _mm512_load_si512(windows + 24);
    const __m512i a0 = _mm512_permutex2var_epi16(w0, first_words, w1),
                  a1 = _mm512_permutex2var_epi16(w2, first_words, w3),
                  b0 = _mm512_permutex2var_epi16(w0, third_words, w1),
                  b1 = _mm512_permutex2var_epi16(w2, third_words, w3);
    __m512i words0 = _mm512_shuffle_i64x2(a0, a1, 0x44), words1 = _mm512_shuffle_i64x2(a0, a1, 0xEE),
            words2 = _mm512_shuffle_i64x2(b0, b1, 0x44), words3 = _mm512_shuffle_i64x2(b0, b1, 0xEE);
    __m512i used = _mm512_setzero_si512();
    do {
      // Three sums shorten the dependency chain.
      __m512i sums[3] = {shortest, _mm512_setzero_si512(), _mm512_setzero_si512()};
#pragma GCC unroll 16
      for (uint32_t i = 0; i < N; ++i) {
        sums[i % 3] = _mm512_mask_add_epi16(sums[i % 3], _mm512_cmpgt_epu16_mask(words0, lasts[i]), sums[i % 3], one);
      }
      __m512i bits = _mm512_add_epi16(sums[0], _mm512_add_epi16(sums[1], sums[2]));
      const __m512i code = _mm512_srlv_epi16(words0, _mm512_sub_epi16(word_bits, bits));
      const __m512i index =
          _mm512_castsi256_si512(_mm512_cvtepi16_epi8(_mm512_add_epi16(code, _mm512_permutexvar_epi16(bits, offsets))));
      const __m512i lower = _mm512_permutex2var_epi8(symbols[0], index, symbols[1]);
      const __m512i upper = _mm512_permutex2var_epi8(symbols[2], index, symbols[3]);
      const __m256i found = _mm512_castsi512_si256(_mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lower, upper));
      if (++row == rows && rest != 0) [[unlikely]] {
        const __mmask32 there = (1u << rest) - 1;
        _mm256_mask_storeu_epi8(to, there, found);
        bits = _mm512_maskz_mov_epi16(there, bits);
      } else {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), found);
      }
      to += kBitLanes;
      words0 = _mm512_shldv_epi16(words0, words1, bits);
      words1 = _mm512_shldv_epi16(words1, words2, bits);
      words2 = _mm512_shldv_epi16(words2, words3, bits);
      words3 = _mm512_sllv_epi16(words3, bits);
      used = _mm512_add_epi16(used, bits);
    } while (row < rows && _mm512_cmpgt_epu16_mask(used, full) == 0);
    lanes.skip(used);
  }
}

}  // namespace

bool huffman_decode_avx512(const kernels::HuffmanStream& stream, Bytes src, MutableBytes dst) {
  const CodeOrder order(stream.lengths);
  Windows lanes(stream.lanes, src);
  const MutableBytes to = dst.first(stream.raw_bytes);
  const uint32_t lengths = order.longest - order.shortest;
  if (lengths <= 4) {
    decode<4>(order, lanes, to);
  } else if (lengths <= 7) {
    decode<7>(order, lanes, to);
  } else if (lengths <= 10) {
    decode<10>(order, lanes, to);
  } else {
    decode<kMaxCodeBits - 1>(order, lanes, to);
  }
  return lanes.are_at_end(stream.lanes);
}

}  // namespace ptxkit::cpu

#endif
