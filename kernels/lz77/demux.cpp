// Writes an LZ block from matches in two passes, with a warp for each segment. The first pass counts what each segment
// will write. The second sums the counts of the previous segments and writes everything to its position.
//
// The parse is greedy: it takes the match at the next position if there is one. A window has 32 positions; the next
// match is one bit scan away, and the positions up to it are literals.
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/lz77/lz_item.hpp"
#include "kernels/transform.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using Matches = FixedLzMatchWords;

constexpr u32 kWords = kLzMatchWords;
constexpr u32 kCountWords = 4;

// A window of 32 positions: masks of those that begin a token, and of those that begin a match.
struct Window {
  LaneU32 position, length, offset;
  WarpU32 tokens, matches;
};

// Calls on_window(window) for the windows of a segment.
template <class OnWindow>
void parse(Kernel& k, const Matches& matches, const BlockU32& size, const WarpU32& segment, const OnWindow& on_window) {
  const WarpU32 begin = segment * kLzSegmentBytes;
  const WarpU32 end = begin + min(size - begin, kLzSegmentBytes);
  WarpVar next(k, begin);  // the beginning of the next token
  k.range(begin, end, kWarpLanes, [&](const WarpU32& base) {
    mark_warp(k, Mark::parse, base);
    const LaneU32 position = base + k.lane();
    const LaneBool inside = position < end;
    const auto match = matches.at(select(inside, position, begin) * kWords);
    const LaneU32 length = select(inside, min(match.at<1>().load(), end - position), 0);
    const WarpU32 can_match = ballot(length >= kLzMinMatch), all_inside = ballot(inside);
    WarpVar tokens(k, 0), taken(k, 0);
    k.warp_loop([&](auto& steps) {
      const WarpU32 at = *next - base;
      steps.break_if((at >= kWarpLanes) | (*next >= end));
      const WarpU32 ahead = can_match & (k.constant<u32>(0xFFFFFFFF) << at);
      const WarpU32 lane = ctz(ahead);  // 32 if there is no match ahead
      // The tokens from `at` up to and including the match.
      tokens |= (shift_left(2, lane) - 1) & (k.constant<u32>(0xFFFFFFFF) << at) & all_inside;
      taken |= ahead & (0 - ahead);
      next = select(ahead == 0, base + kWarpLanes, base + lane + shuffle(length, lane & (kWarpLanes - 1)));
    });
    on_window(Window{position, length, match.load(), *tokens, *taken});
  });
}

// The segment of a CTA. A CTA past the end of its item exits. The item's counts begin at `first_count`.
struct Segment : LzItem {
  Segment(Kernel& k, const LzSizes& sizes, const BlockU32& largest_bytes)
      : LzItem(k, sizes, largest_bytes, lz_parts<kLzSegmentBytes>(largest_bytes)),
        first_count(index * lz_parts<kLzSegmentBytes>(largest_bytes)) {
    k.return_if(part * kLzSegmentBytes >= size);
    mark_warp(k, Mark::item, size);
  }
  BlockU32 first_count;
};

// Room for lz_block_bound(N), a multiple of the strides' unit if N is one.
constexpr SizeExpr kLzBlockRoom =
    N + N / 128 * 16 + N / (4 * kLzSegmentBytes) * 16 + (kLzBlockHeaderBytes + kStrideUnitBytes);

KernelSpec spec_of(std::string_view name, std::vector<Buffer> buffers) {
  buffers.push_back({"sizes", 4});
  return {.name = std::string(name),
          .block = kWarpLanes,
          .budget = {.registers = 64},
          .cost = {.threads_per_element = double{kWarpLanes} / kLzSegmentBytes,
                   .buffers = std::move(buffers),
                   .note = "one warp a segment"}};
}

}  // namespace

KernelDefinition demux_count() {
  return define(
      spec_of(kDemuxCount, {{"matches", N * 12}, {"counts", N / kLzSegmentBytes * 16}}),
      [](Kernel& k, Arg<"matches", Matches> matches, Arg<"sizes", LzSizes> sizes,
         Arg<"counts", Ptr<global, u32, 16>> counts, Arg<"item_bytes", u32> item_bytes) {
        const Segment segment(k, sizes, item_bytes);
        WarpVar tokens(k, 0), taken(k, 0);
        parse(k, segment.matches_of(matches), segment.size, segment.part, [&](const Window& window) {
          tokens += popc(window.tokens);
          taken += popc(window.matches);
        });
        k.once_per_warp([&] {
          const LaneU32 zero = k.constant<u32>(0);
          counts.at(times<kCountWords>(segment.first_count + segment.part))
              .store_vector(std::array<LaneU32, kCountWords>{*tokens - *taken, *taken, (*tokens + 31) / 32, zero});
        });
        mark_warp(k, Mark::status, k.constant<u32>(0));
      });
}

KernelDefinition demux_scatter() {
  return define(
      spec_of(kDemuxScatter, {{"src", N},
                              {"matches", N * 12},
                              {"counts", N / kLzSegmentBytes * 16},
                              {"dst", kLzBlockRoom},
                              {"stream_offsets", kLzStreams * 8},
                              {"stream_sizes", kLzStreams * 4}}),
      [](Kernel& k, Arg<"src", Ptr<read_only, u8, 16>> all_bytes, Arg<"sizes", LzSizes> sizes,
         Arg<"matches", Matches> all_matches, Arg<"counts", Ptr<read_only, u32, 16>> counts,
         Arg<"dst", Ptr<global, u8, 16>> all_blocks, Arg<"stream_offsets", Ptr<global, u64>> stream_offsets,
         Arg<"stream_sizes", Ptr<global, u32>> stream_sizes, Arg<"item_bytes", u32> item_bytes,
         Arg<"dst_stride_16", u32> dst_stride_16) {
        const Segment item(k, sizes, item_bytes);
        const BlockU32 size = item.size;
        const auto src = item.bytes_of(all_bytes);
        const auto matches = item.matches_of(all_matches);
        const auto block_at = times<kStrideUnitBytes>(zext<u64>(item.index) * zext<u64>(dst_stride_16));
        const auto dst = all_blocks.at(block_at);
        // The counts of the whole block, and of the segments before this one.
        LaneVar literals(k, 0), taken(k, 0), words(k, 0), literals_before(k, 0), taken_before(k, 0), words_before(k, 0);
        const WarpU32 segment = item.part;
        for_each_lane(k, lz_parts<kLzSegmentBytes>(size), [&](const LaneU32& other) {
          const auto count = counts.at(times<kCountWords>(item.first_count + other)).load_vector<4>();
          const LaneBool before = other < segment;
          literals += count[0];
          taken += count[1];
          words += count[2];
          literals_before += select(before, count[0], 0);
          taken_before += select(before, count[1], 0);
          words_before += select(before, count[2], 0);
        });
        const WarpU32 literal_count = reduce_add(*literals), match_count = reduce_add(*taken),
                      word_count = reduce_add(*words);
        k.if_(segment == 0, [&] {
          k.once_per_warp([&] {
            dst.as<u32>().store_vector(std::array<LaneU32, 4>{size, literal_count, match_count, word_count});
          });
        });
        const WarpU32 literals_at = word_count * 4 + kLzBlockHeaderBytes, lengths_at = literals_at + literal_count;
        k.if_((segment == 0) & (k.lane() < kLzStreams), [&] {
          const LaneU32 lane = k.lane();
          const LaneU32 before_match = select(lane == 0, kLzBlockHeaderBytes, literals_at);
          const LaneU32 at = select(lane < 2, before_match, lengths_at + match_count * (lane - 2));
          const LaneU32 stream_size = select(lane == 0, word_count * 4, select(lane == 1, literal_count, match_count));
          const LaneU32 stream = item.index * kLzStreams + lane;
          stream_offsets.at(stream).store(block_at + zext<u64>(at));
          stream_sizes.at(stream).store(stream_size);
        });
        WarpVar literal(k, literals_at + reduce_add(*literals_before));
        WarpVar match(k, lengths_at + reduce_add(*taken_before));
        WarpVar word(k, reduce_add(*words_before) + kLzBlockHeaderBytes / 4);
        WarpVar flags(k, 0), held(k, 0);  // bits of an incomplete flag word, and their number
        const auto store_word = [&](const WarpU32& value) {
          k.once_per_warp([&] { dst.as<u32>().at(*word).store(value); });
          word += 1;
        };
        parse(k, matches, size, segment, [&](const Window& window) {
          const LaneBool is_token = (window.tokens >> k.lane() & 1) != 0;
          const LaneBool is_match = (window.matches >> k.lane() & 1) != 0;
          const WarpU32 literal_mask = window.tokens & ~window.matches;
          k.if_(is_token & !is_match,
                [&] { dst.at(*literal + popc(literal_mask & k.lanes_below())).store(src.at(window.position).load()); });
          k.if_(is_match, [&] {
            const LaneU32 to = *match + popc(window.matches & k.lanes_below());
            dst.at(to).store(trunc<u8>(window.length - kLzMinMatch));
            dst.at(to + match_count).store(trunc<u8>(window.offset));
            dst.at(to + match_count * 2).store(trunc<u8>(window.offset >> 8));
          });
          literal += popc(literal_mask);
          match += popc(window.matches);

          const LaneU32 index = popc(window.tokens & k.lanes_below());
          const WarpU32 bits = reduce_or(select(is_match, k.constant<u32>(1) << (index & 31), 0));
          const WarpU32 count = popc(window.tokens);
          const WarpU32 joined = *flags | bits << *held;
          const WarpU32 rest = (bits >> 1) >> (31 - *held);
          const WarpU32 now_held = *held + count;
          k.if_(now_held >= 32, [&] {
             store_word(joined);
             flags = rest;
             held = now_held - 32;
           }).else_([&] {
            flags = joined;
            held = now_held;
          });
        });
        k.if_(*held != 0, [&] { store_word(*flags); });
        mark_warp(k, Mark::status, k.constant<u32>(0));
      });
}

}  // namespace ptxkit::kernels
