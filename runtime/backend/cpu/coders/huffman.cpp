// Huffman with four lanes in flight. A look-up of 11 bits gives two symbols where their codes fit; a longer code goes
// on to a second table. Lanes advance by different numbers of symbols, so each is decoded into room of its own, and the
// rooms are then woven into rows.
#include "kernels/entropy/huffman_reference.hpp"
#include "runtime/backend/cpu/coders/bit_lanes.hpp"
#include "runtime/backend/cpu/coders/coders.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ptxkit::cpu {
namespace {

using kernels::kBitLanes;
using kernels::kMaxCodeBits;
using kernels::kSymbols;
using kernels::StreamStatus;

constexpr uint32_t kTableBits = 11;
constexpr uint32_t kFurtherBits = kMaxCodeBits - kTableBits;
constexpr size_t kTurnLookups = kWindowBits / kTableBits;

// Both symbols, the first lowest; the bits of their codes from bit 16 on; their number from bit 24 on. A number of 0
// stands for longer codes: the entry is where their part of the table begins.
class Table {
 public:
  explicit Table(const std::array<uint8_t, kSymbols>& lengths) {
    const auto codes = kernels::canonical_codes(lengths);
    uint32_t further = 1u << kTableBits;
    for (uint32_t s = 0; s < kSymbols; ++s) {
      const uint32_t length = lengths[s];
      if (length == 0 || length > kTableBits) continue;
      fill(codes[s] << (kTableBits - length), kTableBits - length, s, length);
    }
    for (uint32_t s = 0; s < kSymbols; ++s) {
      const uint32_t length = lengths[s];
      if (length <= kTableBits) continue;
      uint32_t& link = entries_[codes[s] >> (length - kTableBits)];
      if (link == 0) {
        link = further;
        further += 1u << kFurtherBits;
      }
      const uint32_t low = codes[s] & ((1u << (length - kTableBits)) - 1);
      fill(link + (low << (kMaxCodeBits - length)), kMaxCodeBits - length, s, length);
    }
    add_second_symbols();
  }

  // The entry for a window.
  uint32_t at(uint64_t window) const { return entries_[window >> (64 - kTableBits)]; }
  uint32_t further(uint32_t link, uint64_t window) const {
    return entries_[link + (window >> (64 - kMaxCodeBits) & ((1u << kFurtherBits) - 1))];
  }
  // The same, of the first symbol alone.
  uint32_t first_at(uint64_t window) const {
    const uint32_t entry = at(window);
    if (is_link(entry)) return further(entry, window);
    return is_pair(entry) ? single(entry & 0xFF, first_bits_[entry & 0xFF]) : entry;
  }

  static bool is_link(uint32_t entry) { return entry >> 24 == 0; }
  static bool is_pair(uint32_t entry) { return entry >> 24 == 2; }
  static uint32_t bits(uint32_t entry) { return entry >> 16 & 0xFF; }
  static uint32_t count(uint32_t entry) { return entry >> 24; }

 private:
  static constexpr uint32_t single(uint32_t s, uint32_t length) { return s | length << 16 | 1u << 24; }

  void fill(uint32_t from, uint32_t free_bits, uint32_t s, uint32_t length) {
    first_bits_[s] = static_cast<uint8_t>(length);
    std::fill_n(&entries_[from], size_t{1} << free_bits, single(s, length));
  }
  void add_second_symbols() {
    std::array<uint32_t, 1u << kTableBits> singles;
    std::copy_n(entries_.begin(), singles.size(), singles.begin());
    for (uint32_t i = 0; i < 1u << kTableBits; ++i) {
      const uint32_t first = singles[i];
      if (is_link(first)) continue;
      const uint32_t second = singles[i << bits(first) & ((1u << kTableBits) - 1)];
      if (is_link(second) || bits(first) + bits(second) > kTableBits) continue;
      entries_[i] = (first & 0xFF) | (second & 0xFF) << 8 | (bits(first) + bits(second)) << 16 | 2u << 24;
    }
  }

  std::array<uint32_t, (1u << kTableBits) + (kSymbols << kFurtherBits)> entries_{};
  std::array<uint8_t, kSymbols> first_bits_{};
};

struct Lane : BitLane {
  uint8_t* to = nullptr;
  uint8_t* to_end = nullptr;

  size_t symbols_left() const { return static_cast<size_t>(to_end - to); }
};

// Symbols of K lanes until one of them has few left, or a window might leave the source.
template <uint32_t K>
void decode_group(const Table& table, Bytes src, Lane* lanes) {
  const size_t safe = safe_places(src);
  for (;;) {
    size_t turns = ~size_t{0};
    for (uint32_t k = 0; k < K; ++k) {
      // A code that goes on to the second table begins a new window; a turn takes kMaxCodeBits a look-up at most.
      const size_t left = safe > lanes[k].place ? (safe - lanes[k].place) / (kTurnLookups * kMaxCodeBits) : 0;
      turns = std::min({turns, lanes[k].symbols_left() / (2 * kTurnLookups), left});
    }
    if (turns == 0) return;
    size_t places[K];
    uint8_t* tos[K];
    for (uint32_t k = 0; k < K; ++k) {
      places[k] = lanes[k].place;
      tos[k] = lanes[k].to;
    }
    for (; turns != 0; --turns) {
      uint64_t windows[K];
      for (uint32_t k = 0; k < K; ++k) windows[k] = window_at(src.data(), places[k]);
#pragma GCC unroll 5
      for (size_t i = 0; i < kTurnLookups; ++i) {
#pragma GCC unroll 4
        for (uint32_t k = 0; k < K; ++k) {
          uint32_t entry = table.at(windows[k]);
          if (Table::is_link(entry)) [[unlikely]] {
            entry = table.further(entry, windows[k]);
            places[k] += Table::bits(entry);
            windows[k] = window_at(src.data(), places[k]);
            *tos[k]++ = static_cast<uint8_t>(entry);
            continue;
          }
          store(tos[k], static_cast<uint16_t>(entry));
          tos[k] += Table::count(entry);
          windows[k] <<= Table::bits(entry);
          places[k] += Table::bits(entry);
        }
      }
    }
    for (uint32_t k = 0; k < K; ++k) {
      lanes[k].place = places[k];
      lanes[k].to = tos[k];
    }
  }
}

// Row r of `to` gets byte r of every lane, which are `stride` bytes apart, for 16 rows and 16 lanes.
void weave_16(const uint8_t* lanes, size_t stride, uint8_t* to) {
#if defined(__x86_64__)
  __m128i rows[16], woven[16];
  for (size_t i = 0; i < 16; ++i) rows[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes + i * stride));
  // Four times row i and row i + 8 become rows 2i and 2i + 1, a byte of each in turn.
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < 8; ++i) {
      woven[2 * i] = _mm_unpacklo_epi8(rows[i], rows[i + 8]);
      woven[2 * i + 1] = _mm_unpackhi_epi8(rows[i], rows[i + 8]);
    }
    std::copy_n(woven, 16, rows);
  }
  for (size_t i = 0; i < 16; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * kBitLanes), rows[i]);
#else
  for (size_t row = 0; row < 16; ++row) {
    for (size_t lane = 0; lane < 16; ++lane) to[row * kBitLanes + lane] = lanes[lane * stride + row];
  }
#endif
}

// The symbols of all lanes, `stride` bytes apart, in the order of the item.
void weave(const uint8_t* lanes, size_t stride, MutableBytes to) {
  size_t row = 0;
  for (; (row + 16) * kBitLanes <= to.size(); row += 16) {
    for (size_t lane = 0; lane < kBitLanes; lane += 16) {
      weave_16(lanes + lane * stride + row, stride, to.data() + row * kBitLanes + lane);
    }
  }
  for (size_t i = row * kBitLanes; i < to.size(); ++i) to[i] = lanes[i % kBitLanes * stride + i / kBitLanes];
}

// Bits behind those written before. Between flushes at most 57 fit.
struct ForwardBits {
  uint8_t* to;
  uint64_t buffer = 0;
  uint32_t held = 0;

  void add(uint32_t code) {  // its bits in the low half, their number in the high half
    buffer = buffer << (code >> 16) | (code & 0xFFFF);
    held += code >> 16;
  }
  void flush() {  // not when nothing is held
    store_big_endian(to, buffer << (64 - held));
    to += held / 8;
    held &= 7;
  }
};
constexpr size_t kTurnCodes = 57 / kMaxCodeBits;  // between flushes

using Codes = std::array<uint32_t, kSymbols>;

void encode_group(const Codes& codes, const uint8_t* from, ForwardBits* lanes, size_t rows) {
  ForwardBits group[kLaneGroup];
  std::copy_n(lanes, kLaneGroup, group);
  for (; rows >= kTurnCodes; rows -= kTurnCodes) {
#pragma GCC unroll 4
    for (size_t row = 0; row < kTurnCodes; ++row, from += kBitLanes) {
#pragma GCC unroll 4
      for (uint32_t k = 0; k < kLaneGroup; ++k) group[k].add(codes[from[k]]);
    }
#pragma GCC unroll 4
    for (uint32_t k = 0; k < kLaneGroup; ++k) group[k].flush();
  }
  for (; rows != 0; --rows, from += kBitLanes) {
    for (uint32_t k = 0; k < kLaneGroup; ++k) {
      group[k].add(codes[from[k]]);
      group[k].flush();
    }
  }
  std::copy_n(group, kLaneGroup, lanes);
}

}  // namespace

TransformOutcome huffman_encode(Bytes src, MutableBytes dst) {
  std::array<uint8_t, kSymbols> lengths;
  const TransformOutcome begun = kernels::begin_huffman(src, dst, lengths);
  if (begun.status != StreamStatus::ok || src.empty()) return begun;
  Codes codes;
  const auto canonical = kernels::canonical_codes(lengths);
  for (uint32_t s = 0; s < kSymbols; ++s) codes[s] = canonical[s] | uint32_t{lengths[s]} << 16;

  const size_t rows = src.size() / kBitLanes;
  const size_t stride = ((rows + 1) * kMaxCodeBits + 7) / 8 + 8;
  const auto room = uncleared<uint8_t>(stride * kBitLanes);
  std::array<ForwardBits, kBitLanes> lanes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) lanes[lane] = {room.get() + stride * lane};
  for (uint32_t lane = 0; lane < kBitLanes; lane += kLaneGroup) {
    encode_group(codes, src.data() + lane, &lanes[lane], rows);
  }
  std::array<size_t, kBitLanes> sizes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    ForwardBits& bits = lanes[lane];
    if (lane < src.size() % kBitLanes) bits.add(codes[src[rows * kBitLanes + lane]]);
    if (bits.held != 0) bits.flush();
    sizes[lane] = static_cast<size_t>(bits.to - room.get()) - stride * lane + (bits.held != 0 ? 1 : 0);
  }
  return write_bit_lanes(dst, begun.size_bytes, sizes, [&](uint32_t lane, uint8_t* to, size_t size) {
    std::memcpy(to, room.get() + stride * lane, size);
  });
}

TransformOutcome huffman_decode(Bytes src, MutableBytes dst) {
  kernels::HuffmanStream stream;
  const StreamStatus status = kernels::open_huffman(src, dst.size(), stream);
  if (status != StreamStatus::ok || stream.raw_bytes == 0) return {status, 0};
  const auto longest = *std::max_element(stream.lengths.begin(), stream.lengths.end());
  if (longest == 1 && std::count(stream.lengths.begin(), stream.lengths.end(), 1) == 1) {
    return kernels::huffman_decode_reference(src, dst);  // the one code that is not complete: a symbol alone
  }
  const auto table = std::make_unique<const Table>(stream.lengths);
  const size_t stride = stream.raw_bytes / kBitLanes + 1 + 16;
  const auto room = uncleared<uint8_t>(stride * kBitLanes);
  std::array<Lane, kBitLanes> lanes;
  for (uint32_t lane = 0; lane < kBitLanes; ++lane) {
    uint8_t* const to = room.get() + stride * lane;
    lanes[lane] = {{src, stream.lanes[lane]}, to, to + kernels::lane_symbols(stream.raw_bytes, lane)};
  }
  for (uint32_t lane = 0; lane < kBitLanes; lane += kLaneGroup) decode_group<kLaneGroup>(*table, src, &lanes[lane]);
  for (Lane& lane : lanes) {
    decode_group<1>(*table, src, &lane);
    while (lane.to != lane.to_end) {
      const uint32_t entry = table->first_at(lane.careful_window(src));
      *lane.to++ = static_cast<uint8_t>(entry);
      lane.place += Table::bits(entry);
    }
    if (!lane.is_at_end()) return {StreamStatus::corrupt, 0};
  }
  weave(room.get(), stride, dst.first(stream.raw_bytes));
  return {StreamStatus::ok, stream.raw_bytes};
}

}  // namespace ptxkit::cpu
