// Canonical Huffman codes by one warp.
#pragma once

#include "kernels/entropy/frequencies.hpp"
#include "kernels/entropy/lane_bits.hpp"
#include "kernels/entropy/lane_format.hpp"
#include "kernels/transform.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {

// The decoding tables of a code, in shared memory: for each length the first string of kMaxCodeBits bits that begins
// with no code of that length or shorter; what to add to a code of that length to get its symbol's rank; and the
// symbols in order.
struct CodeTables {
  dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp> limits;  // kMaxCodeBits + 1
  dsl::Ptr<dsl::shared, dsl::u32, 16, dsl::Rate::warp> ranks;   // kMaxCodeBits + 1
  dsl::Ptr<dsl::shared, dsl::u8, 16, dsl::Rate::warp> symbols;  // kSymbols
};

// Iterates over the lengths from 1 to kMaxCodeBits. Calls on_length(length, first code, number of shorter codes) once
// for each, and on_code(j, s, code, rank) for the lane's symbols that have a code. Returns the size of the code, in
// units of its longest code.
template <class OnLength, class OnCode>
WarpU32 for_canonical_codes(dsl::Kernel& k, LaneSymbols& lengths, const OnLength& on_length, const OnCode& on_code) {
  using namespace dsl;
  WarpVar first(k, 0), rank(k, 0), size(k, 0);
  k.range(k.constant<u32>(1), kMaxCodeBits + 1, 1, [&](const auto& length) {
    LaneVar own(k, 0);
    unrolled<kLaneSymbols>([&](auto j) { own += zext<u32>(*lengths[j] == length); });
    const WarpU32 count = reduce_add(*own);
    LaneVar before(k, exclusive_sum(*own));
    for_lane_symbols(k, [&](auto j, const LaneU32& s) {
      k.if_(*lengths[j] == length, [&] {
        on_code(j, s, *first + *before, *rank + *before);
        before += 1;
      });
    });
    on_length(length, *first, count, *rank);
    size += count << (kMaxCodeBits - length);
    rank += count;
    first = (*first + count) << 1;
  });
  return *size;
}

}  // namespace ptxkit::kernels
