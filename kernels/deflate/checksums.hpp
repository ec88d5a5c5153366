// CRC-32 of gzip and Adler-32 of zlib, by one warp.
//
// Both take the aligned words among the bytes in rows of 32, lane l word l of each row. The last row is whole; what is
// missing in the first ones is zeros, which change neither sum. Bytes behind the last whole word follow one by one.
#pragma once

#include <array>

#include "kernels/deflate/deflate_format.hpp"
#include "kernels/transform.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

inline constexpr uint32_t kCrc32TableEntries = 4 * 256;

// The aligned words of `size` bytes at `data`.
template <class Data>
class ChecksumWords {
 public:
  ChecksumWords(dsl::Kernel& k, const Data& data, const WarpU32& size)
      : k_(k), data_(data), size_(size), skew_(dsl::trunc<dsl::u32>(data.address()) & 3), count_((skew_ + size) / 4) {}

  // Whether the first four bytes are in them.
  WarpBool has_first_word() const { return count_ * 4 >= skew_ + 4; }
  WarpU32 size_bytes() const { return count_ * 4 - skew_; }  // if there is one

  // Calls add(word) for each of the lane's words, and behind_rows() after each four rows. The bits of the first four
  // bytes are inverted on request.
  template <class Add, class BehindRows>
  void for_each(bool inverts_first, const Add& add, const BehindRows& behind_rows) const {
    using namespace dsl;
    const auto words = data_.template align_down<4>().template as<u32>();
    const WarpU32 missing = (0 - count_) & (kRows * kWarpLanes - 1), lowest = min(skew_, 1);
    const WarpU32 head = head_word(), first_bits = shift_left(~k_.constant<u32>(0), skew_ * 8);
    k_.range(k_.constant<u32>(0), count_ + missing, kRows * kWarpLanes, [&](const WarpU32& first) {
      std::array<LaneVar, kRows> loaded{LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0), LaneVar(k_, 0)};
      for (u32 i = 0; i < kRows; ++i) {
        const LaneU32 index = first + k_.lane() + k_.constant(i * kWarpLanes) - missing;
        k_.if_(index - lowest < count_ - lowest, [&] { loaded[i] = words.at(index).load(); });
      }
      k_.if_(first <= kRows * kWarpLanes, [&] {
        for (u32 i = 0; i < kRows; ++i) {
          const LaneU32 index = first + k_.lane() + k_.constant(i * kWarpLanes) - missing;
          const LaneU32 word = select((index == 0) & (skew_ != 0), head, *loaded[i]);
          const LaneU32 inverted = select(index == 0, first_bits, select(index == 1, ~first_bits, 0));
          loaded[i] = inverts_first ? LaneU32(word ^ inverted) : word;
        }
      });
      for (u32 i = 0; i < kRows; ++i) add(*loaded[i]);
      behind_rows();
    });
  }

  // Calls add(byte) for the bytes from `from` on, in order.
  template <class Add>
  void for_bytes(const WarpU32& from, const Add& add) const {
    k_.range(from, size_, 1,
             [&](const WarpU32& i) { add(WarpU32(broadcast(dsl::zext<dsl::u32>(data_.at(i).load())))); });
  }

 private:
  static constexpr dsl::u32 kRows = 4;  // that are loaded before they are added

  // The word in which the bytes begin, if there are bytes before them in it.
  WarpU32 head_word() const {
    using namespace dsl;
    WarpVar head(k_, 0);
    k_.if_((skew_ != 0) & (count_ != 0), [&] {
      k_.range(k_.constant<u32>(0), 4 - skew_, 1,
               [&](const WarpU32& i) { head |= WarpU32(broadcast(zext<u32>(data_.at(i).load()))) << (skew_ + i) * 8; });
    });
    return *head;
  }

  dsl::Kernel& k_;
  Data data_;
  WarpU32 size_, skew_;  // to a multiple of 4
  WarpU32 count_;
};

namespace crc32 {

// A remainder is a polynomial: bit 31 is 1, bit 0 is x^31.
constexpr uint32_t times_x(uint32_t value) { return value >> 1 ^ (value % 2 != 0 ? kCrc32Polynomial : 0); }
constexpr uint32_t power_of_x(uint32_t exponent) {
  uint32_t value = 1u << 31;
  for (uint32_t i = 0; i < exponent; ++i) value = times_x(value);
  return value;
}

template <dsl::Rate R>
dsl::Expr<dsl::u32, R> times_x(const dsl::Expr<dsl::u32, R>& value) {
  return value >> 1 ^ ((0 - (value & 1)) & kCrc32Polynomial);
}
// The product of two remainders.
inline LaneU32 product(dsl::Kernel& k, const LaneU32& a, const LaneU32& b) {
  using namespace dsl;
  LaneVar sum(k, 0), factor(k, b), bits(k, a);
  k.range(k.constant<u32>(0), k.constant<u32>(32), 1, [&](const auto&) {
    sum ^= (0 - (*bits >> 31)) & *factor;
    bits = *bits << 1;
    factor = times_x<Rate::thread>(*factor);
  });
  return *sum;
}
// Of 32 constants that of the lane.
template <class Of>
LaneU32 of_lane(dsl::Kernel& k, const Of& of) {
  LaneVar value(k, k.constant(of(0)));
  for (uint32_t i = 1; i < dsl::kWarpLanes; ++i)
    value = dsl::select(k.lane() == k.constant(i), k.constant(of(i)), *value);
  return *value;
}

// Makes the table of x^(32 * 32), by which a lane multiplies from one of its words to the next: an entry for each value
// of each of the four bytes.
inline void make_table(dsl::Kernel& k, const dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp>& table) {
  using namespace dsl;
  // Lane i has the product of bit i.
  const LaneU32 own = of_lane(k, [](uint32_t i) { return power_of_x(32 * kWarpLanes + 31 - i); });
  k.sync_warp();
  for (u32 byte = 0; byte < 4; ++byte) {
    LaneVar low(k, 0);
    for (u32 bit = 0; bit < 5; ++bit)
      low ^= (0 - (k.lane() >> k.constant(bit) & 1)) & LaneU32(shuffle(own, k.constant(byte * 8 + bit)));
    for (u32 high = 0; high < 8; ++high) {
      LaneVar entry(k, *low);
      for (u32 bit = 0; bit < 3; ++bit) {
        if ((high >> bit & 1) != 0) entry ^= LaneU32(shuffle(own, k.constant(byte * 8 + 5 + bit)));
      }
      table.at(k.lane() + k.constant(byte * 256 + high * kWarpLanes)).store(*entry);
    }
  }
  k.sync_warp();
}

}  // namespace crc32

// Of `size` bytes at any address. The whole warp calls it; `table` has room for kCrc32TableEntries.
template <class Data>
WarpU32 crc32_of(dsl::Kernel& k, const Data& data, const WarpU32& size,
                 const dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp>& table) {
  using namespace dsl;
  const ChecksumWords<Data> words(k, data, size);
  WarpVar crc(k, ~0u), from(k, 0);
  k.if_(words.has_first_word(), [&] {
    crc32::make_table(k, table);
    // The last word is not multiplied by the table, but by what the words of the lanes behind it and it have as bits.
    LaneVar last(k, 0);
    words.for_each(
        true,
        [&](const LaneU32& word) {
          const auto entry = [&](u32 byte) {
            return table.at((*last >> k.constant(8 * byte) & 0xFF) + k.constant(256 * byte)).load();
          };
          last = entry(0) ^ entry(1) ^ entry(2) ^ entry(3) ^ word;
        },
        [] {});
    const LaneU32 behind = crc32::of_lane(k, [](uint32_t i) { return crc32::power_of_x(32 * (kWarpLanes - i)); });
    crc = reduce_xor(crc32::product(k, *last, behind));
    from = words.size_bytes();
  });
  words.for_bytes(*from, [&](const WarpU32& byte) {
    crc ^= byte;
    k.range(k.constant<u32>(0), k.constant<u32>(8), 1, [&](const auto&) { crc = crc32::times_x<Rate::warp>(*crc); });
  });
  return ~*crc;
}

// Of `size` bytes at any address. The whole warp calls it.
template <class Data>
WarpU32 adler32_of(dsl::Kernel& k, const Data& data, const WarpU32& size) {
  using namespace dsl;
  constexpr u32 kRowBytes = 4 * kWarpLanes;
  const ChecksumWords<Data> words(k, data, size);
  WarpVar a(k, 1), b(k, 0), from(k, 0);
  k.if_(words.has_first_word(), [&] {
    // The sum of the lane's bytes; that of these sums before each row; that of how far bytes are behind their words'
    // starts.
    LaneVar sum(k, 0), sums(k, 0), behind(k, 0);
    words.for_each(
        false,
        [&](const LaneU32& word) {
          const LaneU32 second = word >> 8 & 0xFF, third = word >> 16 & 0xFF, fourth = word >> 24;
          sums += *sum;
          sum += (word & 0xFF) + second + third + fourth;
          behind += second + third * 2 + fourth * 3;
        },
        [&] {
          sum = *sum % kAdlerModulus;
          sums = *sums % kAdlerModulus;
          behind = *behind % kAdlerModulus;
        });
    const LaneU32 of_lane =
        *sums * kRowBytes % kAdlerModulus + *sum * (kRowBytes - k.lane() * 4) % kAdlerModulus + kAdlerModulus - *behind;
    a = (1 + reduce_add(*sum)) % kAdlerModulus;
    from = words.size_bytes();
    b = (*from % kAdlerModulus + reduce_add(of_lane)) % kAdlerModulus;
  });
  words.for_bytes(*from, [&](const WarpU32& byte) {
    a = (*a + byte) % kAdlerModulus;
    b = (*b + *a) % kAdlerModulus;
  });
  return *b << 16 | *a;
}

}  // namespace ptxkit::kernels
