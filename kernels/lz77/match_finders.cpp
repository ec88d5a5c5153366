// Match finders with hash chains. Every position has a link to the nearest earlier position with the same hash, so a
// position's chain is ordered from near to far. The chain does not depend on the order of execution, and neither does
// its longest match, the nearest of equals.
#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/abi.hpp"
#include "kernels/kernels.hpp"
#include "kernels/lz4/lz4_format.hpp"
#include "kernels/lz77/abi.hpp"
#include "kernels/lz77/lz_item.hpp"
#include "kernels/lz77/lz_source.hpp"
#include "kernels/warp_item.hpp"

namespace ptxkit::kernels {
namespace {

using namespace dsl;
using LaneVar = Var<u32, Rate::thread>;
using Bytes = LzBytes;
using Source = LzSource;
using Matches = LzMatchWords;
using FixedMatches = FixedLzMatchWords;

constexpr u32 kWords = kLzMatchWords;
constexpr u32 kOwnedBuckets = (1u << kLzHashBits) / kLzLinkBlocks;  // buckets of a warp of lz77_link

// The item of a CTA whose threads have `Positions` positions each.
template <u32 Positions = 1>
LzItem item_of_threads(Kernel& k, const LzSizes& sizes, const BlockU32& item_bytes) {
  const LzItem item(k, sizes, item_bytes, lz_parts<kLzBlockThreads * Positions>(item_bytes));
  mark_warp(k, Mark::item, item.size);
  return item;
}

// The first position of this thread. Threads past the end exit.
template <u32 Positions = 1>
LaneU32 position_of_thread(Kernel& k, const LzItem& item) {
  const LaneU32 position = (item.part * kLzBlockThreads + k.thread()) * Positions;
  k.return_if(position >= item.size);
  return position;
}

// Calls body(candidate, loop) for the links of `position`, near to far, at most `Links` of them and at most `MaxOffset`
// back.
template <u32 MaxOffset, u32 Links, class Linked, class Body>
void for_candidates(Kernel& k, const Linked& matches, const LaneU32& position, const Body& body) {
  LaneVar next(k, matches.at(position * kWords + 2).load());
  k.range(k.constant<u32>(0), LaneU32(k.constant(Links)), 1, [&](const auto&, auto& chain) {
    chain.break_if(*next == 0);
    const LaneU32 candidate = *next - 1;
    chain.break_if(position - candidate > MaxOffset);
    body(candidate, chain);
    next = matches.at(candidate * kWords + 2).load();
  });
}

// Stores the longest candidate of `position`, the nearest of equals, in its match. A longer candidate must agree in the
// four bytes that end one byte after the longest so far, so these are compared first.
template <u32 MaxOffset, u32 Links>
void find_longest(Kernel& k, const Source& src, const Matches& matches, const LaneU32& position) {
  const LaneU32 limit = longest_match(src, position);
  LaneVar longest(k, kLzMinMatch - 1), offset(k, 0);
  LaneVar last_bytes(k, src.word_at(select(limit >= kLzMinMatch, position, 0)));
  for_candidates<MaxOffset, Links>(k, matches, position, [&](const LaneU32& candidate, auto& chain) {
    k.if_(src.word_at(candidate + (*longest - (kLzMinMatch - 1))) == *last_bytes, [&] {
      const LaneU32 length = match_length(k, src, position, candidate);
      k.if_(length > *longest, [&] {
        longest = length;
        offset = position - candidate;
        last_bytes = src.word_at(position + (min(length, limit - 1) - (kLzMinMatch - 1)));
      });
    });
    chain.break_if(*longest >= limit);  // no candidate can be longer
  });
  matches.at(position * kWords).store(*offset);
  matches.at(position * kWords + 1).store(select(*offset == 0, 0, *longest));
}

KernelSpec spec_of(std::string_view name, u32 positions_a_thread, std::vector<Buffer> buffers, std::string note) {
  buffers.push_back({"sizes", 4});
  return {.name = std::string(name),
          .block = kLzBlockThreads,
          .budget = {.registers = 48},
          .cost = {
              .threads_per_element = 1.0 / positions_a_thread, .buffers = std::move(buffers), .note = std::move(note)}};
}

}  // namespace

// Every warp iterates over all positions and links those whose hash is in its part, in order. Earlier positions among
// the same 32 are found with match.any, those before them in the last position of each bucket.
KernelDefinition lz77_link() {
  KernelSpec spec =
      spec_of(kLz77Link, 1, {{"src", N}, {"matches", N * 12}}, "16 warps a block, each over all positions");
  spec.block = kWarpLanes;
  // the size of the grid does not depend on N
  spec.cost.threads_per_element = double{kLzLinkBlocks * kWarpLanes} / (4u << 20);
  spec.budget.shared_bytes = kOwnedBuckets * sizeof(u32);
  return define(spec, [](Kernel& k, Arg<"src", Bytes> bytes, Arg<"sizes", LzSizes> sizes,
                         Arg<"matches", Matches> all_matches, Arg<"item_bytes", u32> item_bytes) {
    const LzItem item(k, sizes, item_bytes, k.constant(kLzLinkBlocks));
    const Source src(bytes, item);
    mark_warp(k, Mark::item, src.size);
    k.return_if(src.size == 0);  // an empty block
    const Matches matches = item.matches_of(all_matches);
    const auto heads = k.shared<u32, kOwnedBuckets, 16>("heads");
    k.range(k.constant<u32>(0), kOwnedBuckets / kWarpLanes, 1,
            [&](const auto& i) { heads.store(i * kWarpLanes + k.lane(), k.constant<u32>(0)); });
    k.sync_warp();
    const LaneU32 lane = k.lane();
    const auto begins_match = [&](const LaneU32& position) {
      return (position < src.size) & (src.size - position >= kLzMinMatch);
    };
    const auto word_of = [&](const LaneU32& position) {
      return src.word_at(select(begins_match(position), position, 0));
    };
    LaneVar ahead(k, word_of(lane));  // loaded one iteration before it is hashed
    k.range(k.constant<u32>(0), src.size, kWarpLanes, [&](const auto& base) {
      mark_warp(k, Mark::parse, base);
      const LaneU32 position = base + lane;
      const LaneBool hashed = begins_match(position);
      const LaneU32 hash = (*ahead * kHashMultiplier) >> (32 - kLzHashBits);
      ahead = word_of(position + kWarpLanes);
      const LaneBool mine = hashed & (hash / kOwnedBuckets == item.part);
      const LaneU32 bucket = hash % kOwnedBuckets;
      k.if_(any(mine), [&] {
        // The other lanes share one value, since match.any takes time for each distinct value.
        const LaneU32 same = match_any(select(mine, bucket, kOwnedBuckets));
        const LaneU32 earlier = same & k.lanes_below();
        const LaneU32 head = heads.load(bucket);
        k.sync_warp();  // every lane has read before one writes
        k.if_(mine, [&] {
          matches.at(position * kWords + 2).store(select(earlier != 0, base + (32 - clz(earlier)), head));
          k.if_((same >> lane) == 1, [&] { heads.store(bucket, position + 1); });
        });
        k.sync_warp();
      });
      // The last three positions begin no match. The first warp writes their links.
      k.if_((item.part == 0) & (position < src.size) & !hashed,
            [&] { matches.at(position * kWords + 2).store(k.constant<u32>(0)); });
    });
    mark_warp(k, Mark::status, k.constant<u32>(0));
  });
}

KernelDefinition lz77_hash() {
  return define(spec_of(kLz77Hash, 1, {{"src", N}, {"matches", N * 12}}, "a thread a position, after lz77_link"),
                [](Kernel& k, Arg<"src", Bytes> bytes, Arg<"sizes", LzSizes> sizes, Arg<"matches", Matches> matches,
                   Arg<"item_bytes", u32> item_bytes) {
                  const LzItem item = item_of_threads(k, sizes, item_bytes);
                  const LaneU32 position = position_of_thread(k, item);
                  find_longest<kLzMaxOffset, kLzMaxLinks>(k, Source(bytes, item), item.matches_of(matches), position);
                  mark_warp(k, Mark::status, k.constant<u32>(0));
                });
}

KernelDefinition lz77_batch() {
  return define(spec_of(kLz77Batch, kLzBatchPositions, {{"src", N}, {"matches", N * 12}},
                        "32 positions a thread, at most 16 candidates each, after lz77_link"),
                [](Kernel& k, Arg<"src", Bytes> bytes, Arg<"sizes", LzSizes> sizes, Arg<"matches", Matches> all_matches,
                   Arg<"item_bytes", u32> item_bytes) {
                  const LzItem item = item_of_threads<kLzBatchPositions>(k, sizes, item_bytes);
                  const LaneU32 first = position_of_thread<kLzBatchPositions>(k, item);
                  const Source src(bytes, item);
                  const Matches matches = item.matches_of(all_matches);
                  k.range(first, min(src.size - first, kLzBatchPositions) + first, 1, [&](const LaneU32& position) {
                    find_longest<kLzBatchMaxOffset, kLzBatchMaxLinks>(k, src, matches, position);
                  });
                  mark_warp(k, Mark::status, k.constant<u32>(0));
                });
}

KernelDefinition lz77_lazy() {
  return define(spec_of(kLz77Lazy, 1, {{"matches", N * 12}, {"resolved", N * 12}}, "a thread a position"),
                [](Kernel& k, Arg<"matches", FixedMatches> all_matches, Arg<"resolved", Matches> resolved,
                   Arg<"sizes", LzSizes> sizes, Arg<"item_bytes", u32> item_bytes) {
                  const LzItem item = item_of_threads(k, sizes, item_bytes);
                  const LaneU32 position = position_of_thread(k, item);
                  const FixedMatches matches = item.matches_of(all_matches);
                  const auto length_at = [&](const LaneU32& at) {
                    const LaneBool there = at < item.size;
                    return select(there, matches.at(select(there, at, 0) * kWords + 1).load(), 0);
                  };
                  const LaneU32 length = length_at(position);
                  const LaneBool drops = (length_at(position + 1) > length) | (length_at(position + 2) > length + 1);
                  const auto from = matches.at(position * kWords);
                  const auto to = item.matches_of(resolved).at(position * kWords);
                  to.store(select(drops, 0, from.load()));
                  to.at<1>().store(select(drops, 0, length));
                  to.at<2>().store(from.at<2>().load());
                  mark_warp(k, Mark::status, k.constant<u32>(0));
                });
}

KernelDefinition lz77_per_position() {
  return define(spec_of(kLz77PerPosition, 1, {{"src", N}, {"matches", N * 12}}, "a thread a position, over its window"),
                [](Kernel& k, Arg<"src", Bytes> bytes, Arg<"sizes", LzSizes> sizes, Arg<"matches", Matches> matches,
                   Arg<"item_bytes", u32> item_bytes, Arg<"window", u32> window) {
                  const LzItem item = item_of_threads(k, sizes, item_bytes);
                  const LaneU32 position = position_of_thread(k, item);
                  const Source src(bytes, item);
                  LaneVar longest(k, kLzMinMatch - 1), best(k, 0);
                  const auto widest = min(min(window, kLzMaxWindow), k.constant(kLzMaxWindowWork) / src.size);
                  k.range(1, min(position, widest) + 1, 1, [&](const LaneU32& offset, auto& offsets) {
                    const LaneU32 length = match_length(k, src, position, position - offset);
                    k.if_(length > *longest, [&] {
                      longest = length;
                      best = offset;
                    });
                    offsets.break_if(length >= longest_match(src, position));  // no candidate can be longer
                  });
                  const auto to = item.matches_of(matches).at(position * kWords);
                  to.store(*best);
                  to.at<1>().store(select(*best == 0, 0, *longest));
                  to.at<2>().store(k.constant<u32>(0));
                  mark_warp(k, Mark::status, k.constant<u32>(0));
                });
}

KernelDefinition lz77_topk() {
  return define(
      spec_of(kLz77TopK, 1, {{"src", N}, {"matches", N * 12}, {"candidates", N * (12 * kLzTopK)}},
              "a thread a position, after lz77_link"),
      [](Kernel& k, Arg<"src", Bytes> bytes, Arg<"sizes", LzSizes> sizes, Arg<"matches", FixedMatches> all_matches,
         Arg<"candidates", Matches> candidates, Arg<"item_bytes", u32> item_bytes) {
        const LzItem item = item_of_threads(k, sizes, item_bytes);
        const LaneU32 position = position_of_thread(k, item);
        const Source src(bytes, item);
        const FixedMatches matches = item.matches_of(all_matches);
        std::array<LaneVar, kLzTopK> lengths{LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0)};
        std::array<LaneVar, kLzTopK> offsets{LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0), LaneVar(k, 0)};
        for_candidates<kLzMaxOffset, kLzMaxLinks>(k, matches, position, [&](const LaneU32& candidate, auto&) {
          const LaneU32 found = match_length(k, src, position, candidate);
          LaneVar length(k, select(found < kLzMinMatch, 0, found)), offset(k, position - candidate);
          unrolled<kLzTopK>([&](auto i) {  // the better candidate stays, the other is compared with the next place
            const LaneBool better = *length > *lengths[i];
            const LaneU32 worse_length = select(better, *lengths[i], *length);
            const LaneU32 worse_offset = select(better, *offsets[i], *offset);
            lengths[i] = select(better, *length, *lengths[i]);
            offsets[i] = select(better, *offset, *offsets[i]);
            length = worse_length;
            offset = worse_offset;
          });
        });
        const auto to = item.matches_of<kLzTopK>(candidates).at(position * (kWords * kLzTopK));
        unrolled<kLzTopK>([&](auto i) {
          to.at(std::integral_constant<u32, i * kWords>{}).store(*offsets[i]);
          to.at(std::integral_constant<u32, i * kWords + 1>{}).store(*lengths[i]);
          to.at(std::integral_constant<u32, i * kWords + 2>{}).store(k.constant<u32>(0));
        });
        mark_warp(k, Mark::status, k.constant<u32>(0));
      });
}

}  // namespace ptxkit::kernels
