// FSE tables as Zstandard has them, by one warp: what zstd_fse_reference.cpp computes.
#pragma once

#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/fse_tables.hpp"
#include "kernels/transform.hpp"
#include "kernels/warp_item.hpp"
#include "kernels/zstd/zstd_format.hpp"

namespace ptxkit::kernels {

using SharedBytes = dsl::Ptr<dsl::shared, dsl::u8, 16, dsl::Rate::warp>;

template <class Total, class Distinct>
WarpU32 zstd_table_bits(dsl::Kernel& k, const Total& total, const Distinct& distinct, uint32_t max_bits) {
  using namespace dsl;
  const WarpU32 wanted = 29 - clz(max(total - 1, 4)), needed = 32 - clz(distinct - 1);
  return min(max(max(wanted, needed), kZstdMinTableBits), k.constant(max_bits));
}

// log2 of a value above 0, in 1/256.
template <class Value>
auto zstd_log2(const Value& value) {
  using namespace dsl;
  const auto whole = 31 - clz(value);
  const auto part = (value << clz(value)) >> 23 & 0xFF;
  return (whole << 8) + part + (part * (256 - part) * 88 >> 16);
}

// Bytes that one lane writes to shared memory, from the lowest bit on.
class ZstdSerialBits {
 public:
  ZstdSerialBits(dsl::Kernel& k, const SharedBytes& to) : k_(k), to_(to), size_(k, 0), held_(k, 0), buffer_(k, 0) {}

  // Appends at most 16 bits.
  template <class Field, class Count>
  void append(const Field& field, const Count& count) {
    buffer_ |= field << *held_;
    held_ += count;
    k_.thread_loop([&](auto& bytes) {
      bytes.break_if(*held_ < 8);
      store();
      held_ -= 8;
    });
  }
  // Fills up the last byte.
  void pad() {
    k_.if_(*held_ != 0, [&] { store(); });
    held_ = 0;
  }
  LaneU32 size_bytes() const { return *size_; }

 private:
  void store() {
    using namespace dsl;
    to_.at(*size_).store(trunc<u8>(*buffer_));
    size_ += 1;
    buffer_ >>= 8;
  }

  dsl::Kernel& k_;
  SharedBytes to_;
  LaneVar size_, held_, buffer_;
};

// Appends the description of a table of 2^table_bits states, in one lane. The low half of each of `words` is a symbol's
// frequency.
inline void zstd_describe(dsl::Kernel& k, const SymbolWords& words, const LaneU32& table_bits, ZstdSerialBits& bits) {
  using namespace dsl;
  const LaneU32 two = k.constant<u32>(2);
  bits.append(table_bits - kZstdMinTableBits, LaneU32(k.constant<u32>(4)));
  LaneVar left(k, shift_left(1, table_bits) + 1), symbol(k, 0);
  k.thread_loop([&](auto& symbols) {
    symbols.break_if(*left <= 1);
    const LaneU32 frequency = words.at(*symbol).load() & 0xFFFF, value = frequency + 1;
    const LaneU32 width = 32 - clz(*left);
    const LaneU32 half = shift_left(1, width - 1), short_count = half * 2 - 1 - *left;
    bits.append(select(value >= half, value + short_count, value), width - zext<u32>(value < short_count));
    left -= frequency;
    symbol += 1;
    k.if_(frequency == 0, [&] {
      LaneVar zeros(k, 0);
      k.thread_loop([&](auto& run) {
        run.break_if((words.at(*symbol).load() & 0xFFFF) != 0);
        symbol += 1;
        zeros += 1;
      });
      k.thread_loop([&](auto& threes) {
        bits.append(min(*zeros, 3), two);
        threes.break_if(*zeros < 3);
        zeros -= 3;
      });
    });
  });
  bits.pad();
}

}  // namespace ptxkit::kernels
