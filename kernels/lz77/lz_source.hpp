// The input of the match finders: the bytes of a block, and comparison of two positions in it.
#pragma once

#include "kernels/lz77/lz_item.hpp"

namespace ptxkit::kernels {

using LzBytes = dsl::Ptr<dsl::read_only, dsl::u8, kStrideUnitBytes>;

// A block. Aligned words are read up to the next multiple of 16 bytes after it.
struct LzSource {
  LzSource(const LzBytes& src, const LzItem& item) : bytes(item.bytes_of(src)), size(item.size) {}
  LzBytes bytes;
  BlockU32 size;

  // The four bytes at `i`, from the one or two aligned words that contain them.
  LaneU32 word_at(const LaneU32& i) const {
    const auto words = bytes.as<dsl::u32>();
    return dsl::funnel_right(words.at(i / 4).load(), words.at((i + 3) / 4).load(), i * 8);
  }
  // The eight bytes at `i`, as two little-endian words, from the two or three aligned words that contain them.
  std::array<LaneU32, 2> words_at(const LaneU32& i) const {
    const auto words = bytes.as<dsl::u32>().at(i / 4);
    const LaneU32 middle = words.template at<1>().load();
    return {dsl::funnel_right(words.load(), middle, i * 8),
            dsl::funnel_right(middle, bytes.as<dsl::u32>().at((i + 7) / 4).load(), i * 8)};
  }
};

// The largest possible length of a match at `position`.
inline LaneU32 longest_match(const LzSource& src, const LaneU32& position) {
  return dsl::min(src.size - position, kLzMaxMatch);
}

// The number of bytes that agree at `a` and `b` < `a`: at most `Most`, and not past the end. The first `Known` are
// known to agree.
template <dsl::u32 Known = 0, dsl::u32 Most = kLzMaxMatch>
LaneU32 match_length(dsl::Kernel& k, const LzSource& src, const LaneU32& a, const LaneU32& b) {
  const LaneU32 limit = dsl::min(src.size - a, Most);
  dsl::Var<dsl::u32, dsl::Rate::thread> length(k, Known);
  k.thread_loop([&](auto& words) {
    words.break_if(*length + 4 > limit);
    const LaneU32 differs = src.word_at(a + *length) ^ src.word_at(b + *length);
    length += dsl::ctz(differs) / 8;  // 4 if all agree
    words.break_if(differs != 0);
  });
  // the bytes for which a word would extend past the end; the first difference also ends this loop
  k.thread_loop([&](auto& bytes) {
    bytes.break_if(*length >= limit);
    bytes.break_if(src.bytes.at(a + *length).load() != src.bytes.at(b + *length).load());
    length += 1;
  });
  return *length;
}

}  // namespace ptxkit::kernels
