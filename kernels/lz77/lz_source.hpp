// What the match finders read: the bytes of a block, and how far two places of it agree.
#pragma once

#include "kernels/lz77/lz_item.hpp"

namespace ptxkit::kernels {

using LzBytes = dsl::Ptr<dsl::read_only, dsl::u8, kStrideUnitBytes>;

// The block. Aligned words are read up to the next multiple of 16 bytes behind it.
struct LzSource {
  LzSource(const LzBytes& src, const LzItem& item) : bytes(item.bytes_of(src)), size(item.size) {}
  LzBytes bytes;
  BlockU32 size;

  // The four bytes at `i`, from the one or two aligned words that hold them.
  LaneU32 word_at(const LaneU32& i) const {
    const auto words = bytes.as<dsl::u32>();
    return dsl::funnel_right(words.at(i / 4).load(), words.at((i + 3) / 4).load(), i * 8);
  }
  // The eight bytes at `i`, as two little-endian words, from the two or three aligned ones that hold them.
  std::array<LaneU32, 2> words_at(const LaneU32& i) const {
    const auto words = bytes.as<dsl::u32>().at(i / 4);
    const LaneU32 middle = words.template at<1>().load();
    return {dsl::funnel_right(words.load(), middle, i * 8),
            dsl::funnel_right(middle, bytes.as<dsl::u32>().at((i + 7) / 4).load(), i * 8)};
  }
};

// The longest that a match at `position` can be.
inline LaneU32 longest_match(const LzSource& src, const LaneU32& position) {
  return dsl::min(src.size - position, kLzMaxMatch);
}

// Bytes that agree at `a` and `b` < `a`, at most `Most` and never past the end; the first `Known` are known to.
template <dsl::u32 Known = 0, dsl::u32 Most = kLzMaxMatch>
LaneU32 match_length(dsl::Kernel& k, const LzSource& src, const LaneU32& a, const LaneU32& b) {
  const LaneU32 limit = dsl::min(src.size - a, Most);
  dsl::Var<dsl::u32, dsl::Rate::thread> length(k, Known);
  k.thread_loop([&](auto& words) {
    words.break_if(*length + 4 > limit);
    const LaneU32 differs = src.word_at(a + *length) ^ src.word_at(b + *length);
    length += dsl::ctz(differs) / 8;  // 4 where nothing differs
    words.break_if(differs != 0);
  });
  k.thread_loop([&](auto& bytes) {  // what a word would go past the end for; the first that differs ends this too
    bytes.break_if(*length >= limit);
    bytes.break_if(src.bytes.at(a + *length).load() != src.bytes.at(b + *length).load());
    length += 1;
  });
  return *length;
}

}  // namespace ptxkit::kernels
